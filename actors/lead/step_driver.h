#pragma once

#include <cstdint>
#include <optional>

#include "actors/assembled.h"
#include "actors/caf_shim.h"
#include "actors/decide/improvement.h"
#include "actors/lead/copies.h"
#include "actors/lead/evaluation.h"
#include "actors/lead/loss.h"
#include "actors/lead/progress.h"
#include "actors/lead/run_reporter.h"
#include "actors/lead/saves.h"
#include "actors/lead/step_history.h"
#include "actors/lead/straggler_watch.h"
#include "actors/messages.h"
#include "actors/play/player_table.h"
#include "actors/run_spec.h"
#include "actors/wait.h"
#include "core/result.h"

namespace troupe::actors {

/// The progress of a run while its players are there: gives out rounds, counts done steps, and
/// evaluates, keeps and collects the state when due. The supervisor handles lost players, orders
/// and the end; it passes on what it hears and then calls advance().
class StepDriver {
 public:
  /// The other parts of the supervisor.
  struct Context {
    caf_shim::Base* self;
    RunReporter& run_reporter;
    PlayerHost& host;
    PlayerTable& players;
    Saves& saves;
    Loss& loss;
  };
  StepDriver(const Context& around, RunSpecPtr spec);

  /// Called once, with the start state.
  void run_begins(const StartPoint& start);
  /// Switches to a changed run, from the next attempt on.
  void change(RunSpecPtr spec);
  /// Prepares the next attempt, whose players are being assembled.
  void attempt_begins();
  /// Starts an assembled attempt.
  void begun(const Assembled& assembled);

  // Return an error if a report cannot be true now; then do not pass it to heard(). (may.h has
  // checked all that does not depend on the moment.)

  Status expects(const MicroBatchLoss& loss) const;
  Status expects(const Divergence& divergence) const;
  Status expects(const StepDone& done) const;
  Status expects(const LateGradients& late) const;
  Status expects(const RoundPlayed& played) const { return progress_.expects(played); }
  Status expects(const Snapshot& snapshot) const;
  Status expects(const Kept&) const { return Done{}; }  // Harmless: a late one is ignored.

  // Handle a report. An error means that the run has failed.

  Status heard(const MicroBatchLoss& loss);
  Status heard(const Divergence& divergence);
  void heard(const StepDone& done) { progress_.ledger().add(done); }
  void heard(const LateGradients& late) {
    // The step may be done already, since nothing waits for this report.
    if (late.step >= step()) progress_.ledger().add(late);
  }
  void heard(const RoundPlayed& played);
  void heard(const Kept& kept);
  void heard(Snapshot snapshot);
  /// Called when there is a newer checkpoint.
  void saved() { history_.settled(around_.saves.newest()); }
  /// Called when the ledger has more steps.
  void recorded();
  /// Called when players were lost.
  void lost() { copies_.lost(around_.self->now()); }
  void paused() { history_.paused(around_.self->now()); }
  void resumed() {
    history_.resumed(around_.self->now());
    straggler_watch_.interrupted();
  }

  /// Requests; each needs a moment at which nothing is in flight.
  struct Wishes {
    bool end = false;
    bool pause = false;
    bool boundary_change = false;
  };
  /// Something that may happen now: nothing is in flight, and all steps are saved. The course does
  /// nothing else until it has happened. Without a request, `end` means that all steps are done.
  enum class Moment : std::uint8_t { none, boundary_change, end };
  /// Continues as far as the reports allow.
  Moment advance(const Wishes& wishes);
  /// Returns what the run waits for.
  Wait waits_for(const Wishes& wishes) const;

  bool is_assembled() const { return phase_ != Phase::assembling; }
  /// Returns the steps done; before an attempt starts, those of the attempt before.
  std::int64_t step() const { return progress_.step(); }
  /// Returns why the run ends before its last step, if it does.
  const std::optional<Stopped>& early_stop() const { return early_stop_; }
  /// Returns whether no step is left to do.
  bool has_ended() const { return step() >= spec_->steps || early_stop_; }
  const Progress& progress() const { return progress_; }
  const StepHistory& history() const { return history_; }

 private:
  enum class Phase : std::uint8_t {
    assembling,  // Players are being assembled.
    playing,     // Rounds are in flight or can be given out.
    evaluating,  // Only an evaluation is in flight.
    collecting,  // Nothing is in flight; the optimizers send a snapshot.
  };

  Moment go_on(const Wishes& wishes);
  int rounds_ahead() const;
  void give_out(const Play& play);
  bool must_drain(const Wishes& wishes) const;
  bool evaluation_is_due(std::int64_t step) const { return evaluation_.is_due(*spec_, step); }
  bool save_is_due(std::int64_t step) const;
  Moment drained(const Wishes& wishes);
  Status check_divergence(const StepLedger::Entry& entry);
  void complete_steps();
  void tell_step(const Progress::Done& done);
  void keep_another();
  bool keep(std::int64_t step);
  void evaluate();
  void complete_evaluation();
  void look_for_early_stop() { early_stop_ = stops_early(evaluation_.all(), spec_->early_stop); }
  void tell_early_stop();
  void interlude_ends();
  void collect();

  const Context around_;
  RunSpecPtr spec_;
  Phase phase_ = Phase::assembling;
  Progress progress_;
  StepHistory history_;
  StragglerWatch straggler_watch_;
  Copies copies_;
  Evaluation evaluation_;
  std::optional<Stopped> early_stop_;
};

}  // namespace troupe::actors
