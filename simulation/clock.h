#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "actors/decide/detector.h"

namespace troupe::simulation {

using actors::Duration;
using actors::Time;

/// A clock that advances only from one event to the next.
class Clock {
 public:
  Time now() const { return now_; }
  /// Schedules an event. Events of one time happen in the order of scheduling.
  void at(Time time, std::function<void()> event);
  void after(Duration time, std::function<void()> event) { at(now_ + time, std::move(event)); }

  /// Runs the next event; returns false if there is none.
  bool step();

 private:
  struct Event {
    Time time;
    std::uint64_t number = 0;
    std::function<void()> happen;

    friend bool operator<(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.number > b.number;
    }
  };

  Time now_{std::chrono::hours(1)};
  std::priority_queue<Event> events_;
  std::uint64_t asked_ = 0;
};

}  // namespace troupe::simulation
