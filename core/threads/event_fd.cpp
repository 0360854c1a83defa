#include "core/threads/event_fd.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cassert>
#include <cstdint>

namespace troupe {

EventFd::EventFd() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  assert(descriptor_ && "the process has no file descriptors left");
}

void EventFd::ring() {
  const std::uint64_t one = 1;
  // A write fails only if the counter is full. Then the flag is already set.
  [[maybe_unused]] const auto written = ::write(descriptor(), &one, sizeof one);
}

bool EventFd::clear() {
  std::uint64_t rings = 0;
  return ::read(descriptor(), &rings, sizeof rings) == sizeof rings;
}

void EventFd::wait() {
  while (!clear()) {
    pollfd rung{descriptor(), POLLIN, 0};
    ::poll(&rung, 1, -1);
  }
}

void EventFd::wait_for(std::chrono::milliseconds patience) {
  pollfd rung{descriptor(), POLLIN, 0};
  if (::poll(&rung, 1, static_cast<int>(patience.count())) > 0) clear();
}

}  // namespace troupe
