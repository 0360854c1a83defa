#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "actors/caf_shim.h"
#include "actors/lead/goodput.h"
#include "actors/lead/round_under_way.h"
#include "actors/lead/step_ledger.h"

namespace troupe::actors {

/// Statistics of a run's steps over all attempts: their duration, their share of the run's time,
/// and their losses.
class StepHistory {
 public:
  void run_begins(std::int64_t skipped_steps) { skipped_steps_ = skipped_steps; }
  /// Resets the pace, since the new attempt may be faster or slower.
  void attempt_begins() { pace_ = {}; }
  /// Continues after `step` steps.
  void begun(std::int64_t step, caf_shim::TimePoint now);
  /// Starts the next step's time now, which excludes what was done before.
  void step_begins(caf_shim::TimePoint now) {
    step_began_ = now;
    device_ended_.reset();
  }
  /// Returns the time since the step before, and starts the next one. Steps are noticed when their
  /// reports arrive, and several reports may arrive at once.
  caf_shim::Duration done(const StepLedger::Entry& entry, caf_shim::TimePoint now);
  /// Returns the duration of a step that was a round of its own, on the clock of its first device:
  /// from the end of the step before, or from its first action if that step is not known. Returns
  /// nothing for a round of several steps.
  std::optional<caf_shim::Duration> time_on_device(const RoundUnderWay& round);
  /// Notes that no attempt will start before this step.
  void settled(std::int64_t step) { goodput_.settled(step); }

  void paused(caf_shim::TimePoint now) { paused_at_ = now; }
  void resumed(caf_shim::TimePoint now);

  /// Returns the mean duration of this attempt's last steps, or 0 before the first one.
  caf_shim::Duration pace() const { return pace_; }
  double goodput(caf_shim::TimePoint now) const { return goodput_.at(now); }
  /// Returns the mean loss of the last steps, or 0 before the first one.
  double recent_loss() const;
  std::int64_t skipped_steps() const { return skipped_steps_; }

 private:
  caf_shim::TimePoint step_began_;
  // When the last step ended, on the clock of its first device.
  std::optional<std::chrono::steady_clock::time_point> device_ended_;
  caf_shim::TimePoint paused_at_;
  caf_shim::Duration pace_{};
  Goodput goodput_;
  std::deque<double> recent_losses_;
  std::int64_t skipped_steps_ = 0;  // Counts done steps only.
};

}  // namespace troupe::actors
