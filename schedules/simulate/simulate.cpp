#include "schedules/simulate/simulate.h"

#include <algorithm>
#include <cmath>

#include "core/json.h"
#include "schedules/simulate/simulate_bounds.h"
#include "schedules/simulate/simulate_graph.h"

namespace troupe::schedules {
namespace {

double& part_of(DeviceUse::Idle& idle, Wait wait) {
  switch (wait) {
    case Wait::activation:
      return idle.activation;
    case Wait::gradient:
      return idle.gradient;
    case Wait::credit:
      return idle.credit;
    case Wait::reduction:
      return idle.reduction;
    case Wait::nothing:
      break;
  }
  assert(false && "a device is idle and waits for nothing");
  return idle.finished;
}

/// Fills in the times of all actions and the use of each device.
void add_moments(const Schedule& schedule, const std::vector<Moment>& moments,
                 Simulation& simulation) {
  struct Span {
    double first_start = -1;
    double last_end = 0;
  };
  std::vector<Span> spans(schedule.lanes.size());
  for (std::size_t device = 0; device < schedule.lanes.size(); ++device)
    simulation.lanes[device].resize(schedule.lanes[device].size());
  for (const auto& moment : moments) {
    simulation.makespan = std::max(simulation.makespan, moment.end);
    auto& timed = simulation.lanes[moment.device][moment.position];
    timed.start = moment.start;
    timed.end = moment.end;
    if (schedule.lanes[moment.device][moment.position].kind == Kind::give) continue;

    auto& span = spans[moment.device];
    if (span.first_start < 0) span.first_start = moment.start;
    // A group counts once, for its first member.
    if (moment.position > 0 &&
        grouped_with_next(schedule.lanes[moment.device], moment.position - 1))
      continue;
    auto& use = simulation.devices[moment.device];
    timed.wait = moment.wait;
    timed.waited = moment.start - moment.free;
    if (timed.waited > 0) part_of(use.idle, timed.wait) += timed.waited;
    use.busy += moment.end - moment.start;
    span.last_end = moment.end;
  }
  for (std::size_t device = 0; device < spans.size(); ++device) {
    auto& use = simulation.devices[device];
    use.idle.finished = simulation.makespan - spans[device].last_end;
    use.span = spans[device].last_end - std::max(0.0, spans[device].first_start);
  }
}

void add_graph(const Schedule& schedule, const Costs& costs, const Simulator& simulator,
               const std::vector<Moment>& moments, Simulation& simulation) {
  const StepGraph graph(schedule, moments, simulator, costs.landing_slots);
  const auto slacks = graph.slacks(simulation.makespan);
  for (std::size_t moment = 0; moment < moments.size(); ++moment)
    simulation.lanes[moments[moment].device][moments[moment].position].slack = slacks[moment];
  for (const auto moment : graph.critical_path())
    simulation.critical_path.push_back(
        {static_cast<int>(moments[moment].device), static_cast<int>(moments[moment].position)});
  simulation.deepest_queue = graph.deepest_queue();
}

double idle_part(double busy, double whole) { return whole > 0 ? 1 - busy / whole : 0; }

/// Formats a fraction as "33.3 %", independent of the locale.
std::string percent(double part) { return shortest(std::round(part * 1000) / 10) + " %"; }

/// Rounds to four digits.
std::string readable(double number) {
  if (number == 0) return "0";
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(number))) - 3);
  return shortest(unit < 1 ? std::round(number / unit) / std::round(1 / unit)
                           : std::round(number / unit) * unit);
}

}  // namespace

double Simulation::busy() const {
  double sum = 0;
  for (const auto& device : devices) sum += device.busy;
  return sum;
}

double Simulation::largest_span() const {
  double largest = 0;
  for (const auto& device : devices) largest = std::max(largest, device.span);
  return largest;
}

double Simulation::largest_peak() const {
  double largest = 0;
  for (const auto& device : devices) largest = std::max(largest, device.peak);
  return largest;
}

Result<Simulation> simulate(const Schedule& schedule, const Costs& costs) {
  auto simulator = Simulator::make(schedule, costs);
  if (!simulator) return simulator.error();
  std::vector<Moment> moments;
  if (!simulator->record(schedule.lanes, moments))
    return within("schedule '" + schedule.name + "'", Error{simulator->blocked(schedule.lanes)});

  Simulation simulation;
  simulation.lanes.resize(schedule.lanes.size());
  simulation.devices.resize(schedule.lanes.size());
  add_moments(schedule, moments, simulation);
  add_graph(schedule, costs, *simulator, moments, simulation);
  for (std::size_t device = 0; device < schedule.lanes.size(); ++device) {
    const auto peak = peak_of(schedule.lanes[device], costs);
    simulation.devices[device].peak = peak.stash;
    simulation.devices[device].peak_position = peak.position;
  }
  simulation.period = *simulator->period(schedule.lanes);
  const auto devices = static_cast<double>(schedule.lanes.size());
  simulation.bubble = idle_part(simulation.busy(), devices * simulation.makespan);
  simulation.steady_bubble = idle_part(simulation.busy(), devices * simulation.period);
  return simulation;
}

std::string summary(const Simulation& simulation) {
  std::string text = "makespan " + readable(simulation.makespan) + ", bubble " +
                     percent(simulation.bubble) + " of one step; period " +
                     readable(simulation.period) + ", bubble " + percent(simulation.steady_bubble) +
                     " in steady state; peaks";
  for (const auto& device : simulation.devices) text += " " + readable(device.peak);
  return text;
}

}  // namespace troupe::schedules
