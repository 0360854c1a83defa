#pragma once

#include <cstddef>
#include <vector>

#include "schedules/plan/plan.h"
#include "schedules/simulate/simulate_costs.h"

/// What the stages of a pipeline take and hold; part of make_plan().
namespace troupe::schedules {

/// By stage, under these cuts; reductions are left out. Times in seconds, sizes in bytes.
std::vector<StageCosts> stage_costs(const PlanRequest& request, const std::vector<int>& cuts);

/// Where a lane holds most activations in all its stages: the last action of the group that does.
std::size_t peak_of(const Lane& lane, const std::vector<StageCosts>& stages);
/// What each stage holds of activations while the lane of its device plays the group that ends
/// there; 0 for the stages of other devices.
std::vector<double> held_at(const Lane& lane, std::size_t position,
                            const std::vector<StageCosts>& stages);

/// At its peak.
std::vector<double> held_at_peak(const Lane& lane, const std::vector<StageCosts>& stages);

/// Most micro-batches at once of which a lane holds something, by stage.
std::vector<int> in_flight(const Lane& lane, int stages);

/// Whether a lane takes new weights more than once.
bool is_asynchronous(const Schedule& schedule);

/// Versions of its weights that each stage holds on each device, those in the making included:
/// [device][stage].
Result<std::vector<std::vector<int>>> versions_held(const PlanRequest& request,
                                                    const Schedule& schedule);

/// A pair of units that share parameters; the first one owns them.
struct TiedUnits {
  int owner = 0;
  int other = 0;
};
std::vector<TiedUnits> tied_units(const std::vector<UnitCost>& units);

/// All seats of one pipeline, by position, then stage; places are left out.
Result<std::vector<PlannedSeat>> seats_of(const PlanRequest& request, const Schedule& schedule,
                                          const std::vector<int>& cuts);

/// What a seat holds of each unit of its stage, in their order, and at the end what it holds of
/// none: it adds up to the seat's memory.
using SeatUnits = std::vector<StageMemory>;

/// The same seats in the same order, by unit.
Result<std::vector<SeatUnits>> seat_units(const PlanRequest& request, const Schedule& schedule,
                                          const std::vector<int>& cuts);

}  // namespace troupe::schedules
