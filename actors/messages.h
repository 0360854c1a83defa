#pragma once

#include <array>
#include <caf/all.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "actors/deferred_sends.h"
#include "actors/executor.h"
#include "actors/player_id.h"
#include "actors/run_spec.h"
#include "actors/wait.h"
#include "core/digest.h"
#include "core/memory/tensor.h"
#include "core/result.h"
#include "core/value.h"
#include "models/stale/training_stage.h"
#include "models/train/optimizer.h"
#include "schedules/schedule.h"
#include "storage/checkpoint/ledger.h"
#include "transport/wire/fields.h"

/// All messages between the actors of a run. Within a process they carry handles: a sent tensor
/// must not be written any more. Messages with a `type` may go to another process by way of a
/// proxy, which encodes fields() and tensors(), or as dispatch.cpp says.
namespace troupe::transport {
class Adder;
}  // namespace troupe::transport

namespace troupe::actors {

class Ending;

constexpr std::array<std::string_view, 2> enum_names(Round::Purpose) {
  return {"training", "evaluation"};
}

/// The players of one attempt; proxies stand for players in other processes. A failed attempt ends
/// with all its players, and the next one has new players, so no message of the old one reaches
/// them. Messages to the supervisor, which outlives attempts, carry the attempt's number, because
/// they may be late.
struct Players {
  int attempt = 0;
  std::vector<caf::actor> stages;                // Indexed by replica, then device.
  std::vector<caf::actor> optimizers;            // Indexed by stage, then section.
  std::vector<caf::actor> inputs;                // Indexed by replica.
  std::vector<caf::actor> targets;               // Indexed by replica.
  std::vector<std::vector<caf::actor>> keepers;  // Keepers of states, by optimizer.
  /// By stage: sums the gradients by links, if this process holds the stage and its links can sum.
  /// Otherwise null: gradients are exchanged by messages.
  std::vector<std::shared_ptr<transport::Adder>> adders;
  caf::actor supervisor;
  std::shared_ptr<Ending> ending;  // If the supervisor dies, the last player reports the end.
};
using PlayersPtr = std::shared_ptr<const Players>;

/// From the supervisor to all players: here are your peers.
struct Meet {
  PlayersPtr players;
};

/// From the supervisor to stage actors and loaders: play this round next, from this step on.
struct Play {
  static constexpr std::string_view type = "play";

  RoundPtr round;
  std::int64_t first_step = 0;
};

/// Identifies a micro-batch, and lets sender and receiver check that they mean the same one.
struct Header {
  std::int64_t first_step = 0;  // The first step of the round.
  int m = 0;                    // The number in the round's lanes.
  Digest samples;               // The ids of the samples, and their bytes.
  Digest content;
  std::int64_t counted = 0;  // Its targets that count.
  double gap_factor = 1;     // The staleness factor of the stages that its gradient has passed.

  static constexpr auto fields() {
    return std::tuple(transport::required("first_step", &Header::first_step).at_least(0),
                      transport::required("m", &Header::m).at_least(0),
                      transport::required("samples", &Header::samples),
                      transport::required("content", &Header::content),
                      transport::required("counted", &Header::counted).at_least(0),
                      transport::required("gap_factor", &Header::gap_factor));
  }
};

/// From a loader or stage actor to the stage actor of `stage`: its input.
struct Activation {
  static constexpr std::string_view type = "activation";

  Header header;
  int stage = 0;
  models::Bundle value;
  DeviceMark after = {};

  static constexpr auto fields() {
    return std::tuple(transport::required("header", &Activation::header),
                      transport::required("stage", &Activation::stage));
  }
  static constexpr auto tensors() { return std::tuple(&Activation::value); }
};

/// From the target loader to the stage actor of the last stage.
struct Targets {
  static constexpr std::string_view type = "targets";

  Header header;
  Tensor value;

  static constexpr auto fields() {
    return std::tuple(transport::required("header", &Targets::header));
  }
  static constexpr auto tensors() { return std::tuple(&Targets::value); }
};

/// From a stage actor to the stage actor of `stage`: the gradient of its output, and of the kept
/// values that came with the output.
struct Gradient {
  static constexpr std::string_view type = "gradient";

  Header header;
  int stage = 0;
  models::Bundle value;
  DeviceMark after = {};

  static constexpr auto fields() {
    return std::tuple(transport::required("header", &Gradient::header),
                      transport::required("stage", &Gradient::stage));
  }
  static constexpr auto tensors() { return std::tuple(&Gradient::value); }
};

/// From a stage actor to one that shares a parameter: the weights that micro-batch m's pass saw.
struct LoanFor {
  static constexpr std::string_view type = "loan_for";

  Header header;
  int stage = 0;  // The borrowing stage.
  models::Loan loan;
  DeviceMark after = {};
};

/// From a stage actor to a loader: it took a micro-batch, so send another one.
struct Taken {
  static constexpr std::string_view type = "taken";

  int device = 0;  // Within the replica.

  static constexpr auto fields() {
    return std::tuple(transport::required("device", &Taken::device));
  }
};

/// From a device's executor to its stage actor: the posted action is done.
struct ActionDone {
  schedules::Action action;
  WorkTime worked;
};

/// From a job to the actor that posted it: the job threw, or its device failed.
struct JobFailed {
  std::string text;
};

/// From a stage actor to an optimizer actor: its share of the gradients. Ownership moves along.
struct StepGradients {
  static constexpr std::string_view type = "step_gradients";

  std::int64_t step = 0;
  int stage = 0;  // The stage that computed them; differs from the optimizer's if tied.
  int holder = 0;
  std::shared_ptr<models::GradientShare> gradients;
};

/// From the optimizer's jobs to the optimizer actor: initial weights are partly drawn; the sums of
/// squares of a step, or its weights, are computed.
struct Begun {
  std::int64_t done = 0, all = 0;  // Numbers to draw and to pack.
};
struct Normed {
  std::int64_t step = 0;
  std::vector<models::SquaredNorm> squares;
  std::optional<double> penalised;  // The norm of its own gradients after penalties, if any.
};
struct Stepped {
  std::int64_t step = 0;
  models::Version version;
  WorkTime worked;
};

/// From an optimizer actor to all optimizers, itself included: its part of the gradient norm. If
/// each stage clips by its own norm, it goes only to the optimizers of that stage.
struct Norms {
  static constexpr std::string_view type = "norms";

  int optimizer = 0;
  std::int64_t step = 0;
  std::vector<models::SquaredNorm> squares;
};

/// From an optimizer actor to the supervisor: a parameter's gradient is not finite, and loss
/// scaling is not the cause. No optimizer takes this step.
struct Divergence {
  static constexpr std::string_view type = "divergence";

  int attempt = 0;
  int optimizer = 0;
  std::int64_t step = 0;
  std::string parameter;

  static constexpr auto fields() {
    return std::tuple(transport::required("attempt", &Divergence::attempt),
                      transport::required("optimizer", &Divergence::optimizer).at_least(0),
                      transport::required("step", &Divergence::step),
                      transport::required("parameter", &Divergence::parameter));
  }
};

/// From an optimizer actor to the stage actors that hold its stage: its section of a version.
struct NewWeights {
  static constexpr std::string_view type = "new_weights";

  int stage = 0;
  int section = 0;
  models::Version version;
  WorkTime worked;  // On the optimizer's device.
};

/// From an optimizer actor to the supervisor: its section of the version is published.
struct StepDone {
  static constexpr std::string_view type = "step_done";

  int attempt = 0;
  int optimizer = 0;
  std::int64_t step = 0;
  double norm = 0;  // The norm used for clipping: of all stages, or of its own.
  /// The gradients overflowed, so that there is no norm, or no target counted. The weights stayed.
  bool is_skipped = false;
  double loss_scale = 1;           // The loss scale of the gradients.
  std::int64_t skipped_steps = 0;  // In the run so far.
  /// The norm of only this optimizer's gradients after penalties; empty if there are no penalties.
  std::optional<double> penalised_norm = std::nullopt;

  static constexpr auto fields() {
    return std::tuple(transport::required("attempt", &StepDone::attempt),
                      transport::required("optimizer", &StepDone::optimizer),
                      transport::required("step", &StepDone::step),
                      transport::required("norm", &StepDone::norm),
                      transport::required("is_skipped", &StepDone::is_skipped),
                      transport::required("loss_scale", &StepDone::loss_scale),
                      transport::required("skipped_steps", &StepDone::skipped_steps).at_least(0),
                      transport::optional("penalised_norm", &StepDone::penalised_norm));
  }
};

/// From a stage actor to the supervisor: how stale the gradients of a step were.
struct LateGradients {
  static constexpr std::string_view type = "late_gradients";

  int attempt = 0;
  int stage = 0;
  std::int64_t step = 0;
  models::StalenessMetrics metrics;
};

/// From the last stage actor to the supervisor: the loss of a micro-batch.
struct MicroBatchLoss {
  static constexpr std::string_view type = "micro_batch_loss";

  int attempt = 0;
  int replica = 0;
  int device = 0;         // Within the replica.
  std::int64_t step = 0;  // The run's step; for an evaluation, the last step done.
  int index = 0;          // In the step, over all replicas.
  Round::Purpose purpose = Round::Purpose::training;
  double mean = 0;           // Over its targets that count; 0 if none counts.
  Digest samples;            // Its samples,
  Digest content;            // and their bytes.
  std::int64_t counted = 1;  // Its targets that count.
};

/// An action of a device, and its time.
struct DeviceSpan {
  schedules::Action action;
  WorkTime time;
};

/// From a stage actor to the supervisor, and on to the recorder: the round is finished.
struct RoundPlayed {
  static constexpr std::string_view type = "round_played";

  int attempt = 0;
  int replica = 0;
  int device = 0;  // Within the replica.
  std::int64_t first_step = 0;
  Round::Purpose purpose = Round::Purpose::training;
  std::shared_ptr<const std::vector<DeviceSpan>> spans;
  std::size_t most_parcels = 0;  // The most that were ever in its inbox at once.
  // Positions in its lane of passes that targets or a loan held up: these arrived last.
  std::vector<int> held_up = {};
};

/// From a player to the supervisor, at regular intervals: it lives, and this is what it waits for.
struct Pulse {
  static constexpr std::string_view type = "player_pulse";

  int attempt = 0;
  PlayerId who;
  Wait wait;
  int patiences = 0;  // The number of intervals for which it has waited for just this.
};

/// A timer that makes an actor check what it waits for.
struct Look {};

/// From the loader's jobs to the loader, in the order of its reads.
struct ReadDone {};

/// From the supervisor to optimizer actors, while nothing is in flight.
struct TakeSnapshot {
  static constexpr std::string_view type = "take_snapshot";

  static constexpr auto fields() { return std::tuple<>(); }
};
/// An optimizer's state, in host memory.
struct Snapshot {
  static constexpr std::string_view type = "snapshot";

  int attempt = 0;
  int optimizer = 0;
  std::int64_t step = 0;
  std::vector<NamedTensor> weights;
  std::vector<NamedTensor> moments;
  models::LossScale loss_scale;
};

/// From the supervisor to optimizer actors: keep the state after this step in nodes' memory. It
/// must arrive before the step is done, or it is too late.
struct KeepStep {
  static constexpr std::string_view type = "keep_step";

  std::int64_t step = 0;
  std::int64_t line = 0;  // The current recovery point; all other copies may be dropped.

  static constexpr auto fields() {
    return std::tuple(transport::required("step", &KeepStep::step).at_least(0),
                      transport::required("line", &KeepStep::line).at_least(0));
  }
};

/// From an optimizer actor to the keepers of its state.
struct StateCopy {
  static constexpr std::string_view type = "state_copy";

  Snapshot state;
  std::int64_t line = 0;  // The recovery point, as in KeepStep.
};

/// From a keeper to the supervisor: it has a copy. From a keeper or optimizer: it will not.
struct Kept {
  static constexpr std::string_view type = "kept";

  int attempt = 0;
  int optimizer = 0;
  std::int64_t step = 0;
  std::chrono::nanoseconds took{};  // The time that the copy took.
  bool is_late = false;             // The optimizer had already passed the step.
  std::string why_not;              // Any other reason why there is no copy.

  static constexpr auto fields() {
    return std::tuple(transport::required("attempt", &Kept::attempt),
                      transport::required("optimizer", &Kept::optimizer).at_least(0),
                      transport::required("step", &Kept::step).at_least(0),
                      transport::required("took", &Kept::took),
                      transport::required("is_late", &Kept::is_late),
                      transport::required("why_not", &Kept::why_not));
  }
};

/// From the checkpoint store to the supervisor.
struct Saved {
  std::int64_t step = 0;
  Status outcome = Done{};
};

/// Orders to the supervisor.
struct Drain {};    // Finish what is in flight, save, end.
struct StopNow {};  // End at once.
struct Pause {};    // Finish what is in flight and wait.
struct Resume {};

/// From the head to the supervisor in its process: finish what is in flight, save, and continue.
struct BoundaryChange {
  /// Returns the run's new spec, given the number of steps done; then all players are replaced. If
  /// empty, the players continue unchanged.
  std::function<Result<RunSpecPtr>(std::int64_t step)> change;
  /// Called once, on any thread: with the steps that are saved, or with the reason of failure.
  std::function<void(Result<std::int64_t>)> done;
};

/// From the supervisor to the recorder, which answers each with Recorded.
struct Event {
  Value value;
};
struct Recorded {};

/// From the supervisor to the recorder, for the ledger: an attempt continues after `after` steps; a
/// step is committed. The recorder answers each with Recorded.
struct AttemptBegun {
  std::int64_t after = 0;
};
struct StepCommitted {
  storage::LedgerStep step;
};
/// From the supervisor to the recorder: an evaluation is complete. The recorder answers with
/// Recorded.
struct EvaluationDone {
  storage::EvaluatedStep evaluated;
};

/// From the supervisor to the recorder: other players play, perhaps by another plan.
struct Recast {
  RunSpecPtr spec;
};

/// How a run ended.
struct Outcome {
  enum class How : std::uint8_t { done, stopped, failed };

  How how = How::done;
  std::int64_t step = 0;             // Steps that were done and saved.
  std::int64_t skipped_steps = 0;    // Steps of the whole run that changed no weights.
  std::string why;                   // For a run that is done: why before its last step, if so.
  bool all_gone = true;              // If false, some actor is stuck, and so is its thread.
  double recent_loss = 0;            // The mean of the last steps.
  std::vector<NamedTensor> weights;  // The last version, if the run was drained.
  std::vector<std::size_t> most_parcels;  // The most parcels in each inbox, by device.
};

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Meet)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Play)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Activation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Targets)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Gradient)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::LoanFor)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Taken)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::ActionDone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::JobFailed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::StepGradients)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::ReadDone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Begun)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Normed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Stepped)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Norms)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Divergence)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::NewWeights)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::StepDone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::LateGradients)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::MicroBatchLoss)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::RoundPlayed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Pulse)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Look)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::TakeSnapshot)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Snapshot)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::KeepStep)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::StateCopy)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Kept)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Saved)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Drain)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::StopNow)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Pause)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Resume)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::BoundaryChange)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Event)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Recorded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::AttemptBegun)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::StepCommitted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::EvaluationDone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Recast)
