#pragma once

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

/// How many of what the runtime holds at once, beside what the schedule says.
struct HoldingRules {
  int versions_in_the_making = 1;  // Weights that the optimizer writes while the last are in use.
  int gradient_sums = 1;
  /// Whether one more sum is made unit by unit, while the backward pass lets activations go.
  bool makes_sum_in_backward = false;
  int landing_slots = 2;    // Tensors that have come over a boundary and wait.
  int outgoing_slots = 1;   // Tensors made and not yet gone.
  Bytes section_grain = 0;  // What a replica may have beyond an even share of a stage's moments.
};

/// What shall run, and where it may.
struct PlanRequest {
  std::vector<UnitCost> units;
  Cluster cluster;
  int micro_batches = 1;  // In one step, of all replicas together.
  int groups = 1;         // Reduction groups: a replica takes whole ones.

  std::string schedule = "1f1b";     // A name, or "auto".
  std::int64_t effort = 40'000'000;  // Of the search for "auto": 0 compares named schedules alone.
  std::optional<Schedule> written;   // One that the user wrote; its shape is that of the pipeline.
  std::optional<int> stages;         // Nothing: what is fastest.
  std::vector<int> boundaries;       // [0, 3, 6]: units that begin a stage, and the end. Or empty.
  int chunks = 1;                    // Stages on a device.
  std::optional<int> replicas;       // Nothing: as many as there is room for.
  bool even = false;                 // Whether all replicas take as many groups.
  Exchange exchange = Exchange::all_to_all;
  Recompute recompute;          // By stage only with boundaries, which say where stages are.
  std::optional<Bytes> memory;  // That a device may use; nothing: all that it has.
  /// Whether all devices join at the end of a step, as clipping by the norm of all gradients makes
  /// them, or go on to the next.
  Objective objective = Objective::makespan;

  // Asynchronous schedules only.
  VersionRule versions = VersionRule::stash;
  std::optional<int> step_every;  // Micro-batches per optimizer step; nothing: as the name says.

  HoldingRules holding;
};

/// What a stage holds on a device.
struct StageMemory {
  Bytes weights = 0;
  Bytes gradients = 0;
  Bytes optimizer = 0;
  Bytes activations = 0;  // Of the micro-batches in flight, when the device holds most of them.
  Bytes buffers = 0;      // For tensors between devices, and while a pass or an update runs.

  Bytes total() const { return weights + gradients + optimizer + activations + buffers; }
};

/// Consecutive units.
struct PlannedStage {
  int first = 0;  // Units from first up to last.
  int last = 0;
  Seconds forward{};   // A micro-batch, on a device of speed 1.
  Seconds backward{};  // Both halves, and what is computed once more.
  Bytes boundary = 0;  // What comes in with a micro-batch.
};

/// A stage on a device, in every replica. A schedule with two directions puts each stage on two.
struct PlannedSeat {
  int stage = 0;
  int position = 0;                 // In the pipeline.
  std::vector<DevicePlace> places;  // By replica.
  StageMemory memory;
  Bytes workspace = 0;  // The part of its buffers that is for running passes and updates.
  int weight_versions = 1;
  int in_flight = 1;  // Most micro-batches whose activations are held, in whole or in part.
};

/// Shared by all replicas that play the same.
using SchedulePtr = std::shared_ptr<const Schedule>;

/// One of the pipelines that work side by side.
struct PlannedReplica {
  std::vector<DevicePlace> places;  // By position in the pipeline.
  SchedulePtr schedule;             // What it plays, updates included.
  Seconds step{};
};

/// What goes where, and what that should give. A plan changes no number that is computed.
struct Plan {
  std::string schedule;
  int micro_batches = 0;
  int chunks = 1;
  std::vector<PlannedStage> stages;
  std::vector<PlannedSeat> seats;  // By position, then stage.
  std::vector<PlannedReplica> replicas;

  Seconds step{};               // From first start to last end, of the slowest replica.
  Seconds period{};             // Between steps that follow one another with no barrier.
  double bubble = 0;            // The idle part of one step,
  double steady_bubble = 0;     // and of many.
  double rate = 0;              // Micro-batches per second, by the request's objective.
  Bytes boundary_traffic = 0;   // In a step, between devices: activations and gradients,
  Bytes reduction_traffic = 0;  // and sums over replicas and tied parameters.

  int devices() const;
  /// The most that any device of a position in the pipeline holds.
  Bytes memory_at(int position) const;
};

/// The plan with the shortest step (or period), of those that fit. Pure: the same request gives the
/// same plan everywhere. No device of a plan ever holds more than it may. An error says what does
/// not fit: which stage, by how many bytes, and the fewest devices that would do.
Result<Plan> make_plan(const PlanRequest& request);

/// Rejects a schedule of the user that no plan can use: one that is empty or breaks a rule, or
/// whose updates do not end a step. A replica takes all of the schedule's micro-batches in one
/// step.
Status check_written(const Schedule& written);

/// What becomes of a plan when nodes go or come.
struct Outlook {
  enum class Event : std::uint8_t { goes, comes };

  Event event = Event::goes;
  std::vector<std::string> nodes;  // One or two; others of the same class would make no difference.
  std::optional<Plan> plan;        // Nothing: the run would have to wait.
  std::string reason;              // Why there is none, or what had to change.
};

/// For one and for two nodes of every combination of classes. Where fewer devices are left than the
/// request asks for, a synchronous schedule gets fewer stages or replicas; the stages of an
/// asynchronous one are part of its numbers and stay.
std::vector<Outlook> outlooks(const PlanRequest& request);

/// A table of the stages, and what the plan should give.
std::string to_table(const PlanRequest& request, const Plan& plan);
std::string to_table(const Plan& plan, const std::vector<Outlook>& outlooks);

/// The formula behind each number of the table.
std::string explain(const PlanRequest& request, const Plan& plan);

Value to_value(const PlanRequest& request, const Plan& plan);
Value to_value(const Plan& plan, const std::vector<Outlook>& outlooks);

}  // namespace troupe::schedules
