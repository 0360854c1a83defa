#include "apps/machine/bell.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstdint>

namespace troupe::apps {

Bell::Bell() : event_(eventfd(0, EFD_CLOEXEC)) { assert(event_ >= 0); }
Bell::~Bell() { close(event_); }

void Bell::ring() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(event_, &one, sizeof one);
}

void Bell::wait_for(std::chrono::milliseconds patience) {
  pollfd rung{event_, POLLIN, 0};
  if (poll(&rung, 1, static_cast<int>(patience.count())) > 0) wait();
}

void Bell::wait() {
  std::uint64_t rings = 0;
  while (read(event_, &rings, sizeof rings) < 0 && errno == EINTR) {
  }
}

}  // namespace troupe::apps
