#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace troupe::actors {

/// How fast a process computes: a drill may make it slow for a while. Any thread.
class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  /// From now on all that is computed takes so many times as long, until the time is over.
  void slow_down(double times, std::chrono::nanoseconds time) {
    times_ = times;
    until_ = Clock::now() + time;
  }

  /// Called by who has computed for so long.
  void wait_after(Clock::duration worked) const {
    const auto left = until_.load() - Clock::now();
    if (left <= Clock::duration::zero()) return;
    const std::chrono::duration<double> extra = worked * (times_.load() - 1);
    std::this_thread::sleep_for(std::min(left, std::chrono::duration_cast<Clock::duration>(extra)));
  }

 private:
  std::atomic<double> times_{1};
  std::atomic<Clock::time_point> until_{Clock::time_point()};
};

}  // namespace troupe::actors
