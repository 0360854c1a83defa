#pragma once

#include <chrono>

namespace troupe::apps {

/// What the main thread waits at while others work. A signal handler may ring it too.
class Bell {
 public:
  Bell();
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  void ring();
  /// Until it is rung; a ring from before counts.
  void wait();
  /// The same, but no longer than this.
  void wait_for(std::chrono::milliseconds patience);
  /// Readable from the ring until somebody has waited, for who waits for other things too.
  int descriptor() const { return event_; }

 private:
  int event_;
};

}  // namespace troupe::apps
