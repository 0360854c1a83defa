#pragma once

#include <chrono>

namespace troupe::apps {

/// An eventfd that wakes the main thread while other threads work. A signal handler may ring it
/// too.
class Bell {
 public:
  Bell();
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  void ring();
  /// Waits until the bell is rung. An earlier ring that nobody has waited for counts.
  void wait();
  /// Waits at most `patience`.
  void wait_for(std::chrono::milliseconds patience);
  /// Returns the descriptor for poll(). It is readable from a ring until somebody has waited.
  int descriptor() const { return event_; }

 private:
  int event_;
};

}  // namespace troupe::apps
