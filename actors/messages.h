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

#include "actors/executor.h"
#include "actors/player_id.h"
#include "actors/run_spec.h"
#include "actors/wait.h"
#include "actors/withheld.h"
#include "core/digest.h"
#include "core/memory/tensor.h"
#include "core/result.h"
#include "core/value.h"
#include "models/stale/training_stage.h"
#include "models/train/optimizer.h"
#include "schedules/schedule.h"
#include "storage/checkpoint/ledger.h"
#include "transport/wire/fields.h"

/// Every message there is between the actors of a run. In a process they carry handles: a tensor is
/// not written to after it was sent. Those that have a `type` may leave it, by way of an envoy:
/// fields() and tensors() are what goes over, or dispatch.cpp says how it is put.
namespace troupe::transport {
class Adder;
}  // namespace troupe::transport

namespace troupe::actors {

class Ending;

constexpr std::array<std::string_view, 2> enum_names(Round::Purpose) {
  return {"training", "evaluation"};
}

/// Who plays with whom in one attempt; envoys stand for those of other processes. An attempt that
/// fails ends with all of them; the next one has a cast of its own, so that nothing of the old one
/// reaches it. What the cast tells the supervisor, which outlives it, carries the attempt's number:
/// it may come late.
struct Cast {
  int attempt = 0;
  std::vector<caf::actor> stages;                // By replica, then device.
  std::vector<caf::actor> optimizers;            // By stage, then section.
  std::vector<caf::actor> inputs;                // By replica.
  std::vector<caf::actor> targets;               // Likewise.
  std::vector<std::vector<caf::actor>> keepers;  // By optimizer: who keeps copies of its state.
  /// By stage: what adds up its gradients on their way, where this process has a holder of it whose
  /// links can; else they are exchanged.
  std::vector<std::shared_ptr<transport::Adder>> adders;
  caf::actor supervisor;
  std::shared_ptr<Ending> ending;  // Where the supervisor dies, the last of them tells of it.
};
using CastPtr = std::shared_ptr<const Cast>;

/// Supervisor to all of a cast: these are the others.
struct Meet {
  CastPtr cast;
};

/// Supervisor to stage actors and loaders: play this round next, from this step on.
struct Play {
  static constexpr std::string_view type = "play";

  RoundPtr round;
  std::int64_t first_step = 0;
};

/// Which micro-batch it is, and that its sender and its receiver mean the same one.
struct Header {
  std::int64_t first_step = 0;  // Of the round.
  int m = 0;                    // In the lanes of the round.
  Digest samples;               // Which were read, and the bytes that they had.
  Digest content;
  double gap_factor = 1;  // How stale those were whom its gradient has passed.

  static constexpr auto fields() {
    return std::tuple(transport::required("first_step", &Header::first_step).at_least(0),
                      transport::required("m", &Header::m).at_least(0),
                      transport::required("samples", &Header::samples),
                      transport::required("content", &Header::content),
                      transport::required("gap_factor", &Header::gap_factor));
  }
};

/// Loader or stage actor to the stage actor that has `stage`: its input.
struct Activation {
  static constexpr std::string_view type = "activation";

  Header header;
  int stage = 0;
  Tensor value;
  After after = {};

  static constexpr auto fields() {
    return std::tuple(transport::required("header", &Activation::header),
                      transport::required("stage", &Activation::stage));
  }
  static constexpr auto tensors() { return std::tuple(&Activation::value); }
};

/// Target loader to the stage actor that has the last stage.
struct Targets {
  static constexpr std::string_view type = "targets";

  Header header;
  Tensor value;

  static constexpr auto fields() {
    return std::tuple(transport::required("header", &Targets::header));
  }
  static constexpr auto tensors() { return std::tuple(&Targets::value); }
};

/// Stage actor to the one that has `stage`: the gradient of its output.
struct Gradient {
  static constexpr std::string_view type = "gradient";

  Header header;
  int stage = 0;
  Tensor value;
  After after = {};

  static constexpr auto fields() {
    return std::tuple(transport::required("header", &Gradient::header),
                      transport::required("stage", &Gradient::stage));
  }
  static constexpr auto tensors() { return std::tuple(&Gradient::value); }
};

/// Stage actor to another one that shares a parameter of its: what micro-batch m's pass saw.
struct LoanFor {
  static constexpr std::string_view type = "loan_for";

  Header header;
  int stage = 0;  // The borrower.
  models::Loan loan;
  After after = {};
};

/// Stage actor to the loader whose micro-batch it has taken: send another one.
struct Taken {
  static constexpr std::string_view type = "taken";

  int device = 0;  // Of the replica.

  static constexpr auto fields() {
    return std::tuple(transport::required("device", &Taken::device));
  }
};

/// A device's executor to its stage actor: what was posted is done.
struct ActionDone {
  schedules::Action action;
  WorkTime worked;
};

/// A job to whoever posted it: it has thrown, or its device has failed.
struct JobFailed {
  std::string text;
};

/// Stage actor to an optimizer actor: what of its gradients goes there, given away.
struct StepGradients {
  static constexpr std::string_view type = "step_gradients";

  std::int64_t step = 0;
  int stage = 0;  // Whose passes they come from: another one's than the optimizer's, if tied.
  int holder = 0;
  std::shared_ptr<models::GradientShare> gradients;
};

/// The optimizer's own jobs to the optimizer actor: so much of the first weights is there, the sums
/// of a step are, or its weights.
struct Begun {
  std::int64_t done = 0, all = 0;  // Numbers to draw and numbers to pack.
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

/// Optimizer actor to all of them, itself too: its part of the norm of all gradients. Where each
/// stage clips by its own norm: to those of its stage.
struct Norms {
  static constexpr std::string_view type = "norms";

  int optimizer = 0;
  std::int64_t step = 0;
  std::vector<models::SquaredNorm> squares;
};

/// Optimizer actor to supervisor: the gradient of a parameter is not finite any more, and no loss
/// scale is to blame. Nobody takes this step.
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

/// Optimizer actor to the stage actors that hold its stage: its section of a version.
struct NewWeights {
  static constexpr std::string_view type = "new_weights";

  int stage = 0;
  int section = 0;
  models::Version version;
  WorkTime worked;  // On the optimizer's device.
};

/// Optimizer actor to supervisor: its part of the version is published.
struct StepDone {
  static constexpr std::string_view type = "step_done";

  int attempt = 0;
  int optimizer = 0;
  std::int64_t step = 0;
  double norm = 0;  // By which the gradients were clipped: of all stages, or of its own one.
  bool is_skipped = false;  // They overflowed; then there is no norm, and the weights stayed.
  double loss_scale = 1;    // That the gradients had.
  std::int64_t skipped_steps = 0;  // Of the run so far.
  /// The norm of the gradients of this optimizer alone after penalties; empty if none divides them.
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

/// Stage actor to supervisor: how late the gradients of a step were.
struct LateGradients {
  static constexpr std::string_view type = "late_gradients";

  int attempt = 0;
  int stage = 0;
  std::int64_t step = 0;
  models::StalenessMetrics metrics;
};

/// Last stage actor to supervisor.
struct MicroBatchLoss {
  static constexpr std::string_view type = "micro_batch_loss";

  int attempt = 0;
  int replica = 0;
  int device = 0;         // Of the replica.
  std::int64_t step = 0;  // Of the run; in an evaluation the step that was done before.
  int index = 0;          // In the step, over all replicas.
  Round::Purpose purpose = Round::Purpose::training;
  double mean = 0;
  Digest samples;  // That were read for it,
  Digest content;  // and their bytes.
};

/// What a device did in a round.
struct DeviceSpan {
  schedules::Action action;
  WorkTime time;
};

/// Stage actor to supervisor, and on to the recorder: the round is through.
struct RoundPlayed {
  static constexpr std::string_view type = "round_played";

  int attempt = 0;
  int replica = 0;
  int device = 0;  // Of the replica.
  std::int64_t first_step = 0;
  Round::Purpose purpose = Round::Purpose::training;
  std::shared_ptr<const std::vector<DeviceSpan>> spans;
  std::size_t most_parcels = 0;  // That have ever lain there at once.
};

/// Player to supervisor, each patience: it lives, and this is what it waits for.
struct Pulse {
  static constexpr std::string_view type = "player_pulse";

  int attempt = 0;
  PlayerId who;
  Wait wait;
  int patiences = 0;  // For how long it was just this already.
};

/// To itself: look what you wait for.
struct Look {};

/// The loader's own jobs to the loader, in the order of its reads.
struct ReadDone {};

/// Supervisor to optimizer actors, while nothing is in flight.
struct TakeSnapshot {
  static constexpr std::string_view type = "take_snapshot";

  static constexpr auto fields() { return std::tuple<>(); }
};
/// Its tensors lie with the host.
struct Snapshot {
  static constexpr std::string_view type = "snapshot";

  int attempt = 0;
  int optimizer = 0;
  std::int64_t step = 0;
  std::vector<NamedTensor> weights;
  std::vector<NamedTensor> moments;
  models::LossScale loss_scale;
};

/// Supervisor to optimizer actors: what there is once so many steps are done is to be kept in the
/// memory of nodes. Comes before they are done, or too late.
struct KeepStep {
  static constexpr std::string_view type = "keep_step";

  std::int64_t step = 0;
  std::int64_t line = 0;  // That is kept already; what is neither need not be kept any more.

  static constexpr auto fields() {
    return std::tuple(transport::required("step", &KeepStep::step).at_least(0),
                      transport::required("line", &KeepStep::line).at_least(0));
  }
};

/// Optimizer actor to those who keep copies of its state.
struct StateCopy {
  static constexpr std::string_view type = "state_copy";

  Snapshot state;
  std::int64_t line = 0;  // As KeepStep has it.
};

/// Keeper to supervisor: it has a copy. Or it, or the optimizer: there will be none.
struct Kept {
  static constexpr std::string_view type = "kept";

  int attempt = 0;
  int optimizer = 0;
  std::int64_t step = 0;
  std::chrono::nanoseconds took{};  // To copy it.
  bool is_late = false;             // The optimizer was further already.
  std::string why_not;              // Any other reason why there is none.

  static constexpr auto fields() {
    return std::tuple(transport::required("attempt", &Kept::attempt),
                      transport::required("optimizer", &Kept::optimizer).at_least(0),
                      transport::required("step", &Kept::step).at_least(0),
                      transport::required("took", &Kept::took),
                      transport::required("is_late", &Kept::is_late),
                      transport::required("why_not", &Kept::why_not));
  }
};

/// Checkpoint store to supervisor.
struct Saved {
  std::int64_t step = 0;
  Status outcome = Done{};
};

/// Anybody to supervisor.
struct Drain {};    // Finish what is in flight, save, end.
struct StopNow {};  // End.
struct Pause {};    // Finish what is in flight and wait.
struct Resume {};

/// Head to supervisor, in one process: finish what is in flight, save it, and go on.
struct Interlude {
  /// Gives what is to be known from now on, after so many steps: all players are cast anew. Where
  /// it is empty they go on as they are.
  std::function<Result<RunSpecPtr>(std::int64_t step)> change;
  /// Told once, on any thread: the steps that are saved, or why nothing came of it.
  std::function<void(Result<std::int64_t>)> done;
};

/// Supervisor to recorder, which answers each.
struct Event {
  Value value;
};
struct Recorded {};

/// Supervisor to recorder, which answers each, for the ledger: an attempt goes on after so many
/// steps; a step is committed.
struct AttemptBegun {
  std::int64_t after = 0;
};
struct StepCommitted {
  storage::LedgerStep step;
};

/// Supervisor to recorder: another cast plays, perhaps another plan.
struct Recast {
  RunSpecPtr spec;
};

/// How a run ended.
struct Outcome {
  enum class How : std::uint8_t { done, stopped, failed };

  How how = How::done;
  std::int64_t step = 0;           // Steps that were done and are saved.
  std::int64_t skipped_steps = 0;  // Of all that were done: their gradients overflowed in fp16.
  std::string why;
  bool all_gone = true;                   // Else some actor is stuck, and so is its thread.
  double recent_loss = 0;                 // The mean of the last steps.
  std::vector<NamedTensor> weights;       // The last version, where the run was drained.
  std::vector<std::size_t> most_parcels;  // By device: that ever lay there at once, to be used.
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
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Interlude)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Event)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Recorded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::AttemptBegun)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::StepCommitted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Recast)
