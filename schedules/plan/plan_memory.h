#pragma once

#include <cstddef>
#include <vector>

#include "schedules/plan/plan.h"
#include "schedules/simulate/simulate_costs.h"

/// The times and memory of pipeline stages; part of make_plan().
namespace troupe::schedules {

/// Returns the costs of each stage under these cuts, without reductions. Seconds and bytes.
std::vector<StageCosts> stage_costs(const PlanRequest& request, const std::vector<int>& cuts);

/// Returns the lane's peak of activations over all stages: the last action of the peak's group.
std::size_t peak_of(const Lane& lane, const std::vector<StageCosts>& stages);
/// Returns each stage's activations while its device plays the group that ends at `position`; 0 for
/// stages of other devices.
std::vector<double> held_at(const Lane& lane, std::size_t position,
                            const std::vector<StageCosts>& stages);

/// Returns held_at() at the lane's peak.
std::vector<double> held_at_peak(const Lane& lane, const std::vector<StageCosts>& stages);

/// Returns, by stage, the most micro-batches of which a lane keeps something at once.
std::vector<int> in_flight(const Lane& lane, int stages);

/// Returns whether a lane updates its weights more than once.
bool is_asynchronous(const Schedule& schedule);

/// Returns the weight versions of each stage on each device, including those being written:
/// [device][stage].
Result<std::vector<std::vector<int>>> versions_held(const PlanRequest& request,
                                                    const Schedule& schedule);

/// A pair of units that share parameters, which the first one owns. `copy` are those of the other.
struct TiedUnits {
  int owner = 0;
  int other = 0;
  TiedParameters copy;
};
std::vector<TiedUnits> tied_units(const std::vector<UnitCost>& units);

/// Returns all seats of one pipeline by position, then stage, without places.
Result<std::vector<PlannedSeat>> seats_of(const PlanRequest& request, const Schedule& schedule,
                                          const std::vector<int>& cuts);

/// The memory of a seat by unit of its stage; a last entry holds what belongs to no unit. The
/// entries sum up to the seat's memory.
using SeatUnits = std::vector<StageMemory>;

/// Returns the memory by unit of the seats of seats_of(), in the same order.
Result<std::vector<SeatUnits>> seat_units(const PlanRequest& request, const Schedule& schedule,
                                          const std::vector<int>& cuts);

}  // namespace troupe::schedules
