#pragma once

#include <chrono>

#include "core/descriptor.h"

namespace troupe {

/// A flag that threads wait for, with a file descriptor that can be polled beside others (eventfd).
/// Rings add up: whoever waits or clears takes all of them at once.
class EventFd {
 public:
  /// Aborts if the process has no file descriptors left.
  EventFd();
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  /// Any thread, and signal handlers.
  void ring();
  /// Forgets all rings so far. Returns whether there was one. Never waits.
  bool clear();
  /// Waits for a ring and clears it. A ring from before counts.
  void wait();
  /// Waits for a ring, at most this long. A signal may end the wait early.
  void wait_for(std::chrono::milliseconds patience);

  /// Readable from a ring until it is cleared.
  int descriptor() const { return descriptor_.number(); }

 private:
  Descriptor descriptor_;
};

}  // namespace troupe
