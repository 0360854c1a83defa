#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace troupe::apps {

/// Detects that no sign of life comes any more, whichever thread is stuck. It runs on its own
/// thread and watches from the first sign on.
class Watchdog {
 public:
  /// Calls `stuck` with the last sign once none has come for `patience`, and again after each
  /// further `patience`. Time during which the whole process was stopped does not count.
  Watchdog(std::chrono::nanoseconds patience, std::function<void(const std::string& last)> stuck);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Reports life and the current activity. Any thread may call it.
  void sign(std::string doing);
  /// Stops watching until the next sign.
  void rest();

 private:
  void watch();

  std::chrono::nanoseconds patience_;
  std::function<void(const std::string&)> stuck_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> doing_;  // Empty while nobody is watched.
  int silent_ = 0;                    // Looks since the last sign.
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace troupe::apps
