#include "schedules/plan/holdings.h"

#include <cassert>

#include "schedules/plan/plan_draft.h"
#include "schedules/plan/plan_format.h"
#include "schedules/plan/plan_memory.h"

namespace troupe::schedules {

namespace {

Bytes of(const StageMemory& memory, Held held) {
  switch (held) {
    case Held::weights:
      return memory.weights;
    case Held::gradients:
      return memory.gradients;
    case Held::optimizer:
      return memory.optimizer;
    case Held::activations:
      return memory.activations;
    case Held::buffers:
      return memory.buffers;
  }
  return 0;
}

Bytes total(const SeatUnits& units) {
  Bytes bytes = 0;
  for (const StageMemory& unit : units) bytes += unit.total();
  return bytes;
}

/// Returns the units of each seat, taken from the replica that holds most if lanes differ.
std::vector<SeatUnits> units_by_seat(const PlanRequest& request, const Plan& plan) {
  std::vector<int> cuts{0};
  for (const PlannedStage& stage : plan.stages) cuts.push_back(stage.last);
  std::vector<SchedulePtr> schedules;
  for (const PlannedReplica& replica : plan.replicas) schedules.push_back(replica.schedule);
  std::vector<SeatUnits> most;
  for (const SchedulePtr& schedule : distinct(std::move(schedules))) {
    auto units = seat_units(request, *schedule, cuts);
    assert(units && "the plan's versions have been replayed before");
    if (most.empty()) most = *units;
    for (std::size_t k = 0; k < most.size(); ++k)
      if (total((*units)[k]) > total(most[k])) most[k] = std::move((*units)[k]);
  }
  return most;
}

}  // namespace

std::string_view name_of(Held held) {
  switch (held) {
    case Held::weights:
      return "weights";
    case Held::gradients:
      return "gradients";
    case Held::optimizer:
      return "optimizer";
    case Held::activations:
      return "activations";
    case Held::buffers:
      return "buffers";
  }
  return "?";
}

RunMemory run_memory(std::string run, const PlanRequest& request, const Plan& plan) {
  RunMemory memory{.run = std::move(run), .plan = headline(plan), .devices = 0, .holdings = {}};
  const auto by_seat = units_by_seat(request, plan);
  for (const PlannedReplica& replica : plan.replicas) {
    for (std::size_t k = 0; k < plan.seats.size(); ++k) {
      const PlannedSeat& seat = plan.seats[k];
      const SeatUnits& units = by_seat[k];
      for (std::size_t offset = 0; offset < units.size(); ++offset) {
        const std::size_t unit = static_cast<std::size_t>(plan.stages[seat.stage].first) + offset;
        const bool is_of_none = offset + 1 == units.size();
        for (const Held held : all_held)
          if (const Bytes bytes = of(units[offset], held); bytes > 0)
            memory.holdings.push_back({.device = memory.devices + seat.position,
                                       .stage = seat.stage,
                                       .unit = is_of_none ? "" : request.units[unit].name,
                                       .held = held,
                                       .bytes = bytes});
      }
    }
    memory.devices += static_cast<int>(replica.places.size());
  }
  return memory;
}

}  // namespace troupe::schedules
