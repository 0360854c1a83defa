#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace troupe::actors {

/// The speed at which a process computes. An injected fault may lower it. Thread-safe.
class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  /// Stretches all computation by the factor `times` for this long.
  void slow_down(double times, std::chrono::nanoseconds time) {
    times_ = times;
    until_ = Clock::now() + time;
  }

  bool is_lowered() const { return until_.load() > Clock::now(); }

  /// Sleeps if the process is slowed down. Called after each computation, with its duration, and
  /// before its results are sent: other devices must wait for them as for those of a slow machine.
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
