#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <vector>

#include "actors/decide/detector.h"

namespace troupe::simulation {

using actors::Duration;
using actors::Time;

/// A clock that advances only from one event to the next. Everything in a simulation is a function
/// of the seed.
class Clock {
 public:
  explicit Clock(std::uint64_t seed) : random_(seed) {}

  Time now() const { return now_; }
  /// Schedules an event. Events of one time happen in the order of scheduling.
  void at(Time time, std::function<void()> event);
  void after(Duration time, std::function<void()> event) { at(now_ + time, std::move(event)); }

  /// Runs the next event; returns false if there is none.
  bool step();
  std::uint64_t events() const { return happened_; }

  // Random values, determined by the seed.
  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  bool chance(double probability) { return uniform() < probability; }
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  Duration between(Duration least, Duration most) {
    return Duration(between(least.count(), most.count()));
  }
  std::mt19937_64& random() { return random_; }

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
  std::mt19937_64 random_;
  std::priority_queue<Event> events_;
  std::uint64_t asked_ = 0;
  std::uint64_t happened_ = 0;
};

}  // namespace troupe::simulation
