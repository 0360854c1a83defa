#pragma once

#include <cstdint>

#include "actors/assembled.h"
#include "actors/lead/chronicle.h"
#include "actors/lead/copies.h"
#include "actors/lead/evaluation.h"
#include "actors/lead/loss.h"
#include "actors/lead/progress.h"
#include "actors/lead/saves.h"
#include "actors/lead/step_history.h"
#include "actors/messages.h"
#include "actors/play/players.h"
#include "actors/rt.h"
#include "actors/run_spec.h"
#include "actors/wait.h"
#include "core/result.h"

namespace troupe::actors {

/// The course of a run while its players are there: gives rounds out, counts the steps that are
/// done, and evaluates, keeps and collects the state where that is due. What comes from outside
/// (losses of players, orders, the end) is for the supervisor, who tells it what was heard and then
/// has it advance.
class Course {
 public:
  /// Of the same supervisor.
  struct Surroundings {
    rt::Base* self;
    Chronicle& chronicle;
    Players& players;
    Saves& saves;
    Loss& loss;
  };
  Course(const Surroundings& around, RunSpecPtr spec);

  /// Once, with the state that it begins with.
  void run_begins(const StartPoint& start);
  /// From the next attempt on the run is another one.
  void change(RunSpecPtr spec);
  /// Nothing of the attempt before is left; the players of the next one come together.
  void attempt_begins();
  /// They are there.
  void begun(const Assembled& assembled);

  // What may be heard now (may.h has checked all that does not depend on the moment). An error
  // says what is wrong; then the report must not be heard.

  Status expects(const MicroBatchLoss& loss) const;
  Status expects(const Divergence& divergence) const;
  Status expects(const StepDone& done) const;
  Status expects(const LateGradients& late) const;
  Status expects(const RoundPlayed& played) const { return progress_.expects(played); }
  Status expects(const Snapshot& snapshot) const;
  Status expects(const Kept&) const { return Done{}; }  // It is asked for in vain, or not at all.

  // What was heard. Where it is an error the run has failed.

  Status heard(const MicroBatchLoss& loss);
  Status heard(const Divergence& divergence);
  void heard(const StepDone& done) { progress_.ledger().add(done); }
  void heard(const LateGradients& late) {
    // The step may be done by now: nobody waits for this.
    if (late.step >= step()) progress_.ledger().add(late);
  }
  void heard(const RoundPlayed& played);
  void heard(const Kept& kept);
  void heard(Snapshot snapshot);
  /// There is a newer checkpoint.
  void saved() { history_.settled(around_.saves.newest()); }
  /// More is in the ledger.
  void recorded();
  /// Players were lost.
  void lost() { copies_.lost(around_.self->now()); }
  void paused() { history_.paused(around_.self->now()); }
  void resumed() { history_.resumed(around_.self->now()); }

  /// For each of these nothing may be in flight.
  struct Wishes {
    bool end = false;
    bool pause = false;
    bool interlude = false;
  };
  /// Nothing is in flight, and all that was done is saved: now this may be, and nothing else is
  /// done until it was. For an end without a wish all steps are done.
  enum class Moment : std::uint8_t { none, interlude, end };
  /// Goes on as far as what was heard allows.
  Moment advance(const Wishes& wishes);
  /// What it cannot go on without.
  Wait waits_for(const Wishes& wishes) const;

  bool is_assembled() const { return phase_ != Phase::assembling; }
  /// Steps that are done; before an attempt goes on those of the one before.
  std::int64_t step() const { return progress_.step(); }
  const Progress& progress() const { return progress_; }
  const StepHistory& history() const { return history_; }

 private:
  enum class Phase : std::uint8_t {
    assembling,  // Players come together.
    playing,     // Rounds are out, or may be given out.
    evaluating,  // Nothing is in flight but an evaluation.
    collecting,  // Nothing is in flight; the optimizers are asked for a snapshot.
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
  void collect();

  const Surroundings around_;
  RunSpecPtr spec_;
  Phase phase_ = Phase::assembling;
  Progress progress_;
  StepHistory history_;
  Copies copies_;
  Evaluation evaluation_;
};

}  // namespace troupe::actors
