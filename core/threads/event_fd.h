#pragma once

#include <chrono>

#include "core/descriptor.h"

namespace troupe {

/// A flag on which threads wait. Its file descriptor (eventfd) can be polled with other
/// descriptors. Rings add up: one wait or clear() takes all of them.
class EventFd {
 public:
  /// Aborts if the process has no file descriptors left.
  EventFd();
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  /// Sets the flag. Any thread and signal handlers may call it.
  void ring();
  /// Forgets all rings so far. Returns whether there was one. Never waits.
  bool clear();
  /// Waits for a ring and clears it. Returns at once if an earlier ring is not cleared.
  void wait();
  /// Waits for a ring, at most this long. A signal may end the wait early.
  void wait_for(std::chrono::milliseconds patience);

  /// Returns a descriptor that is readable from a ring until it is cleared.
  int descriptor() const { return descriptor_.number(); }

 private:
  Descriptor descriptor_;
};

}  // namespace troupe
