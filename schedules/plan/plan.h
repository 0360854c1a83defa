#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "schedules/check/versions.h"
#include "schedules/exchange.h"
#include "schedules/recompute.h"
#include "schedules/schedule.h"
#include "schedules/search/search.h"
#include "schedules/simulate/cluster.h"
#include "schedules/simulate/cost_model.h"

namespace troupe::schedules {

/// The number of copies and slots that the runtime holds beyond the schedule.
struct HoldingRules {
  int versions_in_the_making = 1;  // Weights being written while the previous version is in use.
  int gradient_sums = 1;
  /// Whether the backward pass builds one more sum unit by unit as it frees activations.
  bool makes_sum_in_backward = false;
  int landing_slots = 2;    // Tensors that arrived over a boundary and wait.
  int outgoing_slots = 1;   // Tensors that are computed and not yet sent.
  Bytes section_grain = 0;  // The excess of a replica's section of moments over an even share.
};

/// The input of the planner: what to run, and where.
struct PlanRequest {
  std::vector<UnitCost> units;
  Cluster cluster;
  int micro_batches = 1;  // Per step, over all replicas.
  int groups = 1;         // Reduction groups. A replica takes whole groups.

  std::string schedule = "1f1b";     // A name, or "auto".
  std::int64_t effort = 40'000'000;  // Search budget for "auto"; 0 compares only named schedules.
  std::optional<Schedule> written;   // A schedule written by the user, with the pipeline's shape.
  std::optional<int> stages;         // Unset: the fastest number.
  std::vector<int> boundaries;  // [0, 3, 6]: first unit of each stage, and the end. May be empty.
  int chunks = 1;               // Stages per device.
  std::optional<int> replicas;  // Unset: as many as fit.
  bool even = false;            // Whether all replicas take equally many groups.
  Exchange exchange = Exchange::all_to_all;
  Recompute recompute;          // Per-stage values need `boundaries`, which define the stages.
  std::optional<Bytes> memory;  // Limit per device; unset: all of its memory.
  /// Whether all devices synchronize at the end of a step (as clipping by the global norm requires)
  /// or continue with the next one.
  Objective objective = Objective::makespan;
  /// The fixed cost of each pass and each update on any device, besides the work of its units. A
  /// plan with more chunks pays it more often.
  Seconds pass{};
  /// The fixed cost of the end of a step, from the gradients of a stage to its next weights,
  /// besides sums, links and the optimizer's work.
  Seconds hand_over{};
  /// Forecasts that differ by at most this part count as equal. Among equal plans the one with the
  /// fewest stages, chunks and devices wins.
  double alike = 0;

  // Asynchronous schedules only.
  VersionRule versions = VersionRule::stash;
  std::optional<int> step_every;  // Micro-batches per optimizer step; unset: schedule's default.

  HoldingRules holding;
};

/// The memory of a stage on a device.
struct StageMemory {
  Bytes weights = 0;
  Bytes gradients = 0;
  Bytes optimizer = 0;
  Bytes activations = 0;  // The stage's activations at the device's peak.
  Bytes buffers = 0;      // Slots for tensors between devices, and workspace of passes and updates.

  Bytes total() const { return weights + gradients + optimizer + activations + buffers; }
};

/// A stage of the plan: consecutive units.
struct PlannedStage {
  int first = 0;  // Units from first up to last.
  int last = 0;
  Seconds forward{};   // Per micro-batch, on a device of speed 1.
  Seconds backward{};  // Both halves, plus recomputation.
  Bytes boundary = 0;  // Received per micro-batch.
};

/// A stage on a device, in every replica. A schedule with two directions has two seats per stage.
struct PlannedSeat {
  int stage = 0;
  int position = 0;                 // In the pipeline.
  std::vector<DevicePlace> places;  // Indexed by replica.
  StageMemory memory;
  Bytes workspace = 0;  // The part of its buffers that passes and updates use.
  int weight_versions = 1;
  int in_flight = 1;  // The most micro-batches whose activations are held, in whole or in part.
};

/// A schedule, shared by all replicas that play it.
using SchedulePtr = std::shared_ptr<const Schedule>;

/// One of the data-parallel pipelines.
struct PlannedReplica {
  std::vector<DevicePlace> places;  // Indexed by position in the pipeline.
  SchedulePtr schedule;             // The lanes, including updates.
  Seconds step{};
};

/// The stages, devices, schedules and predicted speed of a run. It never changes numeric results.
struct Plan {
  std::string schedule;
  int micro_batches = 0;
  int chunks = 1;
  std::vector<PlannedStage> stages;
  std::vector<PlannedSeat> seats;  // Sorted by position, then stage.
  std::vector<PlannedReplica> replicas;

  Seconds step{};               // From first start to last end of the slowest replica.
  Seconds period{};             // Between consecutive steps without a barrier.
  double bubble = 0;            // Idle fraction of one step.
  double steady_bubble = 0;     // Idle fraction of many steps.
  double rate = 0;              // Micro-batches per second, by the request's objective.
  Bytes boundary_traffic = 0;   // Activations and gradients per step between devices.
  Bytes reduction_traffic = 0;  // Per step: sums over replicas and tied parameters.

  int devices() const;
  /// Returns the bytes of the fullest device at a position in the pipeline.
  Bytes memory_at(int position) const;
  /// Returns the bytes of the fullest device.
  Bytes most_memory() const;
};

/// Returns the simplest of the plans that fit and whose step (or period) is about the shortest; see
/// PlanRequest::alike. Pure: equal requests give equal plans everywhere. No device exceeds its
/// memory. An error names the stage that does not fit, the missing bytes and the fewest devices
/// that would do.
Result<Plan> make_plan(const PlanRequest& request);
/// Returns all plans that make_plan() compares, best first. The rest of them are sorted by time.
Result<std::vector<Plan>> candidate_plans(const PlanRequest& request);

/// Rejects a user's schedule that no plan can use: it is empty, breaks a rule, or its updates do
/// not end a step. A replica runs all of the schedule's micro-batches in one step.
Status check_written(const Schedule& written);

/// The new plan after nodes go or come.
struct Outlook {
  enum class Event : std::uint8_t { goes, comes };

  Event event = Event::goes;
  std::vector<std::string> nodes;  // One or two; others of the same class give the same result.
  std::optional<Plan> plan;        // Unset: the run would have to wait.
  std::string reason;              // Why there is no plan, or what had to change.
};

/// Computes outlooks for one and for two nodes of every combination of classes. If fewer devices
/// are left than requested, a synchronous schedule gets fewer stages or replicas. An asynchronous
/// one keeps its stages, because they affect its numbers.
std::vector<Outlook> outlooks(const PlanRequest& request);

/// Format the stages and the predicted performance as a table, in blocks if its rows are wider than
/// `columns`.
std::string to_table(const PlanRequest& request, const Plan& plan,
                     std::size_t columns = std::numeric_limits<std::size_t>::max());
std::string to_table(const Plan& plan, const std::vector<Outlook>& outlooks,
                     std::size_t columns = std::numeric_limits<std::size_t>::max());

/// Explains the formula behind each number of the table.
std::string explain(const PlanRequest& request, const Plan& plan);

Value to_value(const PlanRequest& request, const Plan& plan);
Value to_value(const Plan& plan, const std::vector<Outlook>& outlooks);

}  // namespace troupe::schedules
