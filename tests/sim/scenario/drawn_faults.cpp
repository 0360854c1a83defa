#include "tests/sim/scenario/drawn_faults.h"

#include <algorithm>
#include <chrono>

namespace troupe::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Duration = Scheduler::Duration;
using Kind = Fault::Kind;

/// Whether the fault may stay for ever.
bool may_stay(Kind kind) {
  return kind == Kind::kill || kind == Kind::crash || kind == Kind::freeze || kind == Kind::cut ||
         kind == Kind::cut_one_way || kind == Kind::slow_disk || kind == Kind::full_disk ||
         kind == Kind::cordon;
}

}  // namespace

Fault draw_fault(Drawing& draw, Kind kind, const Scenario& scenario) {
  Fault fault;
  fault.kind = kind;
  fault.machine = draw.between(0, scenario.nodes);
  // Most faults are of nodes, because there is one head.
  if (fault.machine != 0 || draw.one_in(2)) fault.machine = draw.between(1, scenario.nodes);
  if (is_of_people(kind)) fault.machine = draw.between(1, scenario.nodes);
  // Nodes save nothing.
  if (kind == Kind::kill_at_call || kind == Kind::crash_at_call || kind == Kind::damage)
    fault.machine = 0;
  fault.other = draw.between(0, scenario.nodes - 1);
  if (fault.other >= fault.machine) ++fault.other;
  fault.number = draw.below(1'000'000);
  fault.lasts = draw.time_between(milliseconds(1), seconds(kind == Kind::freeze ? 60 : 10));
  if (may_stay(kind) && !scenario.stays_healthy.at(static_cast<std::size_t>(fault.machine)) &&
      draw.one_in(4))
    fault.lasts.reset();
  return fault;
}

Duration usual_length(const Scenario& scenario) {
  return scenario.steps * (scenario.micro_batches + 2 * scenario.stages) *
             (scenario.slowest_job + milliseconds(1)) +
         milliseconds(100);
}

std::vector<Fault> draw_faults(Drawing& draw, const Scenario& scenario) {
  std::vector<Kind> on;
  for (std::size_t kind = 0; kind <= static_cast<std::size_t>(Kind::submit); ++kind)
    if (draw.one_in(2)) on.push_back(static_cast<Kind>(kind));
  std::vector<Fault> faults;
  if (on.empty()) return faults;
  const int count = draw.between(1, 14);
  const auto length = usual_length(scenario);
  Duration at{0};
  for (int i = 0; i < count; ++i) {
    auto fault = draw_fault(draw, on.at(draw.below(on.size())), scenario);
    // Half of the faults come soon after another one: while the run recovers from it.
    at = i > 0 && draw.one_in(2) ? at + draw.time_between(milliseconds(1), seconds(1))
                                 : draw.time_below(length);
    fault.at = at;
    faults.push_back(fault);
  }
  std::ranges::stable_sort(faults, {}, &Fault::at);
  return faults;
}

void fill_queues(Drawing& draw, Scenario& scenario) {
  for (int count = draw.between(1, 6); count > 0; --count) {
    Fault fault;
    fault.kind = Kind::full_queues;
    fault.at = draw.time_below(usual_length(scenario));
    fault.lasts = draw.time_between(milliseconds(1), milliseconds(300));
    fault.machine = draw.one_in(2) ? 0 : draw.between(1, scenario.nodes);
    scenario.faults.push_back(fault);
  }
}

void get_stuck(Drawing& draw, Scenario& scenario) {
  for (int count = draw.between(1, 6); count > 0; --count) {
    Fault fault;
    fault.kind = Kind::stuck;
    fault.at = draw.time_below(usual_length(scenario));
    fault.lasts = draw.time_between(milliseconds(1), seconds(1));
    fault.machine = draw.one_in(4) ? draw.between(1, scenario.nodes) : 0;
    fault.number = draw.below(1'000'000);
    scenario.faults.push_back(fault);
    if (draw.one_in(2)) continue;
    fault.kind = Kind::kill;
    fault.at += draw.time_below(milliseconds(20));
    fault.lasts = milliseconds(1);
    fault.machine = draw.between(1, scenario.nodes);
    scenario.faults.push_back(fault);
  }
}

void delay_reports(Drawing& draw, Scenario& scenario) {
  scenario.at_server = true;
  for (int count = draw.between(1, 6); count > 0; --count) {
    Fault fault;
    fault.kind = Kind::delays;
    fault.at = draw.time_below(usual_length(scenario));
    fault.lasts = draw.time_between(milliseconds(10), seconds(1));
    fault.machine = draw.between(1, scenario.nodes);
    fault.number = draw.below(100'000);
    scenario.faults.push_back(fault);
  }
}

}  // namespace troupe::simulation
