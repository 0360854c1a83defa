#include "schedules/simulate/simulator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "schedules/simulate/simulator_engine.h"

namespace troupe::schedules {

bool grouped_with_next(const Lane& lane, std::size_t position) {
  return (lane[position].flags & Action::with_next) && position + 1 < lane.size() &&
         lane[position].kind != Kind::give && lane[position + 1].kind != Kind::give;
}

namespace {

Status check_ids(const Schedule& schedule) {
  const auto error = [&](const std::string& text) {
    return Error{"schedule '" + schedule.name + "': " + text};
  };
  if (schedule.stages < 1 || schedule.micro_batches < 1 || schedule.lanes.empty())
    return error("needs a stage, a micro-batch and a device at least");
  const auto stages = static_cast<std::size_t>(schedule.stages);
  std::size_t actions = 0;
  for (const auto& lane : schedule.lanes) actions += lane.size();
  // Each stage handles every micro-batch; this check also bounds the simulation's memory.
  const auto passes = stages * static_cast<std::size_t>(schedule.micro_batches);
  if (passes > actions || passes >= std::numeric_limits<std::uint32_t>::max() / 4)
    return error("has " + std::to_string(actions) + " actions, too few for " +
                 std::to_string(stages) + " stages and " + std::to_string(schedule.micro_batches) +
                 " micro-batches");

  if (schedule.routes.empty() || schedule.route_of.empty()) return error("has no route");
  for (const auto route : schedule.route_of)
    if (route >= schedule.routes.size())
      return error("a micro-batch takes route " + std::to_string(route) + " of " +
                   std::to_string(schedule.routes.size()));
  for (const auto& route : schedule.routes) {
    if (route.size() != stages)
      return error("a route has " + std::to_string(route.size()) +
                   " stages; wanted: " + std::to_string(stages));
    for (const auto device : route)
      if (device >= schedule.lanes.size())
        return error("a route leads to device " + std::to_string(device) + " of " +
                     std::to_string(schedule.lanes.size()));
  }
  return Done{};
}

bool holds(const Schedule& schedule, std::size_t device, std::size_t stage) {
  return std::any_of(schedule.routes.begin(), schedule.routes.end(),
                     [&](const Route& route) { return route[stage] == device; });
}

Status check_actions(const Schedule& schedule) {
  for (std::size_t id = 0; id < schedule.lanes.size(); ++id)
    for (const auto action : schedule.lanes[id]) {
      std::string wrong;
      if (action.stage >= schedule.stages)
        wrong = "has no such stage";
      else if (!has_micro_batch(action.kind) && !holds(schedule, id, action.stage))
        wrong = "does not place that stage there";
      else if (has_micro_batch(action.kind) &&
               action.micro_batch >= static_cast<std::uint32_t>(schedule.micro_batches))
        wrong = "has no such micro-batch";
      else if (has_micro_batch(action.kind) && schedule.device(action) != static_cast<int>(id))
        wrong = "places it on device " + std::to_string(schedule.device(action));
      if (!wrong.empty())
        return Error{"device " + std::to_string(id) + " lists " + to_string(action) +
                     ", but schedule '" + schedule.name + "' " + wrong};
    }
  return Done{};
}

}  // namespace

Simulator::Simulator(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
Simulator::~Simulator() = default;
Simulator::Simulator(Simulator&&) noexcept = default;
Simulator& Simulator::operator=(Simulator&&) noexcept = default;

Result<Simulator> Simulator::make(const Schedule& schedule, const Costs& costs) {
  if (auto fine = check_ids(schedule); !fine) return fine.error();
  if (auto fine = check_actions(schedule); !fine) return fine.error();
  if (auto fine = check_costs(costs, schedule.stages, schedule.devices()); !fine)
    return fine.error();
  return Simulator(std::make_unique<Engine>(schedule, costs));
}

std::optional<double> Simulator::makespan(const std::vector<Lane>& lanes) {
  engine_->start_over();
  if (!engine_->play_step(lanes)) return std::nullopt;
  return engine_->end();
}

std::optional<double> Simulator::period(const std::vector<Lane>& lanes) {
  engine_->start_over();
  double third = 0;
  for (int step = 0; step < 4; ++step) {
    third = engine_->end();
    if (!engine_->play_step(lanes)) return std::nullopt;
  }
  return engine_->end() - third;
}

bool Simulator::record(const std::vector<Lane>& lanes, std::vector<Moment>& moments) {
  moments.clear();
  engine_->moments = &moments;
  engine_->start_over();
  const bool finished = engine_->play_step(lanes);
  engine_->moments = nullptr;
  return finished;
}

std::string Simulator::blocked(const std::vector<Lane>& lanes) const {
  return engine_->blocked(lanes);
}

double Simulator::travel(Action to) const { return engine_->travel(to); }

}  // namespace troupe::schedules
