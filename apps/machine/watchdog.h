#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "core/threads/worker.h"

namespace troupe::apps {

/// Notices that nobody gives a sign of life any more, whoever is stuck and wherever: on a thread
/// that does nothing else. It watches from the first sign on.
class Watchdog {
 public:
  /// `stuck` is called with the last sign, once none has come for `patience`, and again after each
  /// further one. Time in which the whole process stood still does not count.
  Watchdog(std::chrono::nanoseconds patience, std::function<void(const std::string& last)> stuck);

  /// Any thread: it lives, and does this.
  void sign(std::string doing);
  /// Until the next sign there is nobody to watch.
  void rest();

 private:
  void watch();
  void look();

  std::chrono::nanoseconds patience_;
  std::function<void(const std::string&)> stuck_;
  std::mutex mutex_;
  std::optional<std::string> doing_;  // Nothing: nobody is watched.
  int silent_ = 0;                    // Looks since then.
  Worker worker_{"watchdog"};         // Last: its thread uses the others.
};

}  // namespace troupe::apps
