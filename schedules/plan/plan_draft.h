#pragma once

#include <string>
#include <vector>

#include "schedules/partition/partition.h"
#include "schedules/plan/plan.h"

/// The steps of make_plan(): choose a shape, draft it, finish it.
namespace troupe::schedules {

/// A plan without cuts and places.
struct PlanShape {
  std::string schedule;  // A name in the registry, or the request's own schedule.
  int positions = 1;     // Devices of a pipeline.
  int chunks = 1;        // Stages on each device.
  int replicas = 1;
  Hops hops = Hops::hidden;  // How the cut treats transfers.

  int stages() const { return positions * chunks; }
};

/// A plan that fits and is not simulated yet.
struct PlanDraft {
  PlanShape shape;
  std::vector<std::vector<DevicePlace>> places;  // Indexed by replica, then position.
  std::vector<SchedulePtr> schedules;            // Indexed by replica; the lanes include updates.
  std::vector<int> cuts;
  std::vector<PlannedSeat> seats;
  Seconds bottleneck{};
  Seconds estimate{};  // The time of a step, for a first selection; see estimate_of().
};

/// Rejects requests that are invalid for any shape.
Status check_request(const PlanRequest& request);

/// Returns all candidate shapes in an order independent of costs, or an error if there are none.
Result<std::vector<PlanShape>> shapes_for(const PlanRequest& request);

/// Returns the lanes of one replica: the passes of the named or written schedule, plus
/// recomputation and updates.
Result<Schedule> lanes_for(const PlanRequest& request, const PlanShape& shape, int micro_batches);

/// Removes duplicate schedules.
std::vector<SchedulePtr> distinct(std::vector<SchedulePtr> schedules);

/// Builds the partition problem for a draft's places and lanes, given the weight versions of each
/// stage: [position][stage]. Underestimates nothing except the micro-batches in flight on a device
/// with several stages.
PartitionProblem problem_of(const PlanRequest& request, const PlanDraft& draft,
                            const std::vector<std::vector<int>>& versions);

/// Drafts a plan. The request must have been checked. An error says what does not fit.
Result<PlanDraft> draft(const PlanRequest& request, const PlanShape& shape);

/// Replaces the lanes and keeps the cuts; returns an error if a device would exceed its memory.
Result<PlanDraft> with_lanes(const PlanRequest& request, PlanDraft draft,
                             std::vector<SchedulePtr> schedules);

/// Returns the usable bytes of the smallest device at a position.
Bytes memory_at(const PlanRequest& request, const PlanDraft& draft, int position);

/// Returns the simulator's input for one replica.
Costs costs_of(const PlanRequest& request, const PlanDraft& draft, int replica);

/// Estimates the step as if all stages were as slow as the slowest one, with what its links and its
/// sums of gradients add.
Seconds estimate_of(const PlanRequest& request, const PlanDraft& draft);

/// Simulates every replica and completes the plan.
Result<Plan> finish(const PlanRequest& request, const PlanDraft& draft);

}  // namespace troupe::schedules
