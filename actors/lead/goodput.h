#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "actors/rt.h"

namespace troupe::actors {

/// How much of the time since a run began here went into steps that count. One that is done again
/// counts once, and what it took before is lost, as is all time between steps: of recoveries,
/// evaluations, saves.
class Goodput {
 public:
  /// An attempt goes on after so many steps.
  void begun(std::int64_t step, rt::TimePoint now);
  /// One step more is done.
  void done(rt::Duration took);
  /// No attempt will begin before this step.
  void settled(std::int64_t step);
  /// Nobody wanted it to go on for so long.
  void paused(rt::Duration time) { paused_ += began_ ? time : rt::Duration(); }

  /// From 0 to 1.
  double at(rt::TimePoint now) const;

 private:
  void forget_oldest();

  std::optional<rt::TimePoint> began_;
  rt::Duration paused_{};
  rt::Duration useful_{};
  std::int64_t settled_ = 0;
  std::deque<rt::Duration> since_;  // What each step has taken.
};

}  // namespace troupe::actors
