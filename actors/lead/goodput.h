#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "actors/caf_shim.h"

namespace troupe::actors {

/// The fraction of the time since the run began here that went into steps that count. A repeated
/// step counts once, and its earlier time is lost, as is all time between steps: recoveries,
/// evaluations and saves.
class Goodput {
 public:
  /// Notes that an attempt continues after `step` steps.
  void begun(std::int64_t step, caf_shim::TimePoint now);
  /// Notes that one more step is done.
  void done(caf_shim::Duration took);
  /// Notes that no attempt will start before this step.
  void settled(std::int64_t step);
  /// Excludes a pause that the user asked for.
  void paused(caf_shim::Duration time) { paused_ += began_ ? time : caf_shim::Duration(); }

  /// Returns a number from 0 to 1.
  double at(caf_shim::TimePoint now) const;

 private:
  void forget_oldest();

  std::optional<caf_shim::TimePoint> began_;
  caf_shim::Duration paused_{};
  caf_shim::Duration useful_{};
  std::int64_t settled_ = 0;
  std::deque<caf_shim::Duration> since_;  // The duration of each step that may be repeated.
};

}  // namespace troupe::actors
