#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/env.h"

namespace troupe::apps {

/// Detects that no sign of life comes any more, whichever thread is stuck. It runs on its own
/// loop and watches from the first sign on.
class Watchdog {
 public:
  /// Calls `stuck` with the last sign once none has come for `patience`, and again after each
  /// further `patience`. Time during which the whole process was stopped does not count.
  Watchdog(Env& env, std::chrono::nanoseconds patience,
           std::function<void(const std::string& last)> stuck);

  /// Reports life and the current activity. Any thread may call it.
  void sign(std::string doing);
  /// Stops watching until the next sign.
  void rest();

 private:
  void watch();
  void look();

  std::chrono::nanoseconds patience_;
  std::function<void(const std::string&)> stuck_;
  std::mutex mutex_;
  std::optional<std::string> doing_;  // Empty while nobody is watched.
  int silent_ = 0;                    // Looks since the last sign.
  std::unique_ptr<Loop> loop_;        // Declared last: its tasks use the other members.
};

}  // namespace troupe::apps
