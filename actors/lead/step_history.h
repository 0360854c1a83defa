#pragma once

#include <cstdint>
#include <deque>

#include "actors/lead/goodput.h"
#include "actors/lead/step_ledger.h"
#include "actors/rt.h"

namespace troupe::actors {

/// How the steps of a run go, over all attempts: how long they take, how much of the run's time
/// goes into them, and their losses.
class StepHistory {
 public:
  void run_begins(std::int64_t skipped_steps) { skipped_steps_ = skipped_steps; }
  /// How fast it is, its steps will show.
  void attempt_begins() { pace_ = {}; }
  /// It goes on after so many steps.
  void begun(std::int64_t step, rt::TimePoint now);
  /// What was done until now is no part of the next step.
  void step_begins(rt::TimePoint now) { step_began_ = now; }
  /// How long the step has taken. From now on it is the next one.
  rt::Duration done(const StepLedger::Entry& entry, rt::TimePoint now);
  /// No attempt will begin before this step.
  void settled(std::int64_t step) { goodput_.settled(step); }

  void paused(rt::TimePoint now) { paused_at_ = now; }
  void resumed(rt::TimePoint now);

  /// Of a step, as the last ones of this attempt were; 0 where there was none.
  rt::Duration pace() const { return pace_; }
  double goodput(rt::TimePoint now) const { return goodput_.at(now); }
  /// The mean of the last steps; 0 before the first one.
  double recent_loss() const;
  std::int64_t skipped_steps() const { return skipped_steps_; }

 private:
  rt::TimePoint step_began_;
  rt::TimePoint paused_at_;
  rt::Duration pace_{};
  Goodput goodput_;
  std::deque<double> recent_losses_;
  std::int64_t skipped_steps_ = 0;  // Of those that are done.
};

}  // namespace troupe::actors
