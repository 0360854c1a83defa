#pragma once

#include <cstdint>
#include <optional>

#include "actors/assembled.h"
#include "actors/caf_shim.h"
#include "actors/decide/improvement.h"
#include "actors/lead/copies.h"
#include "actors/lead/evaluation.h"
#include "actors/lead/loss.h"
#include "actors/lead/player_host.h"
#include "actors/lead/progress.h"
#include "actors/lead/run_reporter.h"
#include "actors/lead/saves.h"
#include "actors/lead/spike_watch.h"
#include "actors/lead/step_history.h"
#include "actors/lead/straggler_watch.h"
#include "actors/messages.h"
#include "actors/play/player_table.h"
#include "actors/run_spec.h"
#include "actors/wait.h"
#include "core/result.h"

namespace troupe::actors {

/// The progress of a run while its players are there: gives out rounds, counts done steps,
/// evaluates and keeps the state when due, and comes to boundaries, where the run's machine says
/// what follows. The supervisor handles lost players, changes and the end; it passes on what it
/// hears and then calls advance().
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

  /// Begins no further rounds, or begins rounds again; in later attempts, too.
  void hold(bool is_held) { is_held_ = is_held; }
  // Answers of the run's machine. Those for another boundary are late and ignored.
  void play_on(std::int64_t step);
  void collect(std::int64_t step);
  /// Returns whether the attempt is at the boundary after this step and waits.
  bool is_at_boundary(std::int64_t step) const {
    return phase_ == Phase::boundary && step == this->step();
  }
  /// Returns whether nothing but the answer of the run's machine is missing.
  bool waits_for_decision() const {
    return phase_ == Phase::spike || (phase_ == Phase::boundary && !around_.saves.is_under_way());
  }
  /// Returns whether the loss of this step is a spike, for which the attempt waits.
  bool has_spike_at(std::int64_t step) const {
    return phase_ == Phase::spike && spike_ && spike_->step == step;
  }
  const std::optional<Spike>& spike() const { return spike_; }
  /// Returns the event for people: the samples of the spike's step are left out.
  Value spike_event() const;
  /// Continues as far as the reports allow.
  void advance();
  /// Returns what the run waits for.
  Wait waits_for(bool is_paused) const;

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
    boundary,    // Nothing is in flight; the run's machine says what follows.
    collecting,  // Nothing is in flight; the optimizers send a snapshot.
    spike,       // The next step is not to be done; the run's machine says what follows.
  };

  void go_on();
  int rounds_ahead() const;
  void give_out(const Play& play);
  bool must_drain() const;
  bool evaluation_is_due(std::int64_t step) const { return evaluation_.is_due(*spec_, step); }
  bool save_is_due(std::int64_t step) const;
  void drained();
  Status check_divergence(const StepLedger::Entry& entry);
  void complete_steps();
  void stop_at(Spike spike);
  void entered(std::int64_t steps);
  void tell_step(const Progress::Done& done);
  void keep_another();
  bool keep(std::int64_t step);
  void evaluate();
  void complete_evaluation();
  void look_for_early_stop() { early_stop_ = stops_early(evaluation_.all(), spec_->early_stop); }
  void tell_early_stop();
  void go_on_playing();

  const Context around_;
  RunSpecPtr spec_;
  Phase phase_ = Phase::assembling;
  bool is_held_ = false;
  Progress progress_;
  StepHistory history_;
  StragglerWatch straggler_watch_;
  Copies copies_;
  Evaluation evaluation_;
  std::optional<Stopped> early_stop_;
  SpikeWatch spike_watch_;
  std::optional<Spike> spike_;
};

}  // namespace troupe::actors
