#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "actors/rt.h"

namespace troupe::actors {

/// The fraction of the time since the run began here that went into steps that count. A repeated
/// step counts once, and its earlier time is lost, as is all time between steps: recoveries,
/// evaluations and saves.
class Goodput {
 public:
  /// Notes that an attempt continues after `step` steps.
  void begun(std::int64_t step, rt::TimePoint now);
  /// Notes that one more step is done.
  void done(rt::Duration took);
  /// Notes that no attempt will start before this step.
  void settled(std::int64_t step);
  /// Excludes a pause that the user asked for.
  void paused(rt::Duration time) { paused_ += began_ ? time : rt::Duration(); }

  /// Returns a number from 0 to 1.
  double at(rt::TimePoint now) const;

 private:
  void forget_oldest();

  std::optional<rt::TimePoint> began_;
  rt::Duration paused_{};
  rt::Duration useful_{};
  std::int64_t settled_ = 0;
  std::deque<rt::Duration> since_;  // The duration of each step that may be repeated.
};

}  // namespace troupe::actors
