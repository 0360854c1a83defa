#pragma once

#include <string>
#include <vector>

#include "schedules/partition/partition.h"
#include "schedules/plan/plan.h"

/// The steps of make_plan(): a shape is chosen, drafted and finished.
namespace troupe::schedules {

/// Everything but cuts and places.
struct PlanShape {
  std::string schedule;  // Of the registry; the request's own where it brings one.
  int positions = 1;     // Devices of a pipeline.
  int chunks = 1;        // Stages on each.
  int replicas = 1;
  Hops hops = Hops::hidden;  // For the cut.

  int stages() const { return positions * chunks; }
};

/// A plan that fits, whose times are not yet known.
struct PlanDraft {
  PlanShape shape;
  std::vector<std::vector<DevicePlace>> places;  // By replica, then position.
  std::vector<SchedulePtr> schedules;            // By replica, updates included.
  std::vector<int> cuts;
  std::vector<PlannedSeat> seats;
  Seconds bottleneck{};

  /// Of the whole step, as if all stages were as slow as the slowest: for a first choice.
  Seconds estimate() const;
};

/// What is wrong with a request, whatever the shape.
Status check_request(const PlanRequest& request);

/// All shapes worth a look, in an order that does not depend on the costs; or why there are none.
Result<std::vector<PlanShape>> shapes_for(const PlanRequest& request);

/// The lanes of one replica: passes as the schedule's name says, or as the request's own has them,
/// recomputation and updates.
Result<Schedule> lanes_for(const PlanRequest& request, const PlanShape& shape, int micro_batches);

/// Each schedule once.
std::vector<SchedulePtr> distinct(std::vector<SchedulePtr> schedules);

/// How to cut the model for the places and lanes of a draft, given the versions of the weights that
/// each stage holds: [position][stage]. Nothing is estimated too low but what a device with several
/// stages has in flight.
PartitionProblem problem_of(const PlanRequest& request, const PlanDraft& draft,
                            const std::vector<std::vector<int>>& versions);

/// The request must have been checked. An error says what does not fit.
Result<PlanDraft> draft(const PlanRequest& request, const PlanShape& shape);

/// The same cuts with other lanes; an error where they hold more than the devices have.
Result<PlanDraft> with_lanes(const PlanRequest& request, PlanDraft draft,
                             std::vector<SchedulePtr> schedules);

/// Of the devices at a position, what the one with least may hold; in bytes.
Bytes memory_at(const PlanRequest& request, const PlanDraft& draft, int position);

/// What a replica's simulation is told.
Costs costs_of(const PlanRequest& request, const PlanDraft& draft, int replica);

/// Simulates every replica.
Result<Plan> finish(const PlanRequest& request, const PlanDraft& draft);

}  // namespace troupe::schedules
