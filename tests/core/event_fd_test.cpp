#include "core/threads/event_fd.h"

#include <poll.h>

#include <thread>

#include "catch.h"

using namespace troupe;
using namespace std::chrono_literals;

namespace {

bool is_readable(const EventFd& event) {
  pollfd file{event.descriptor(), POLLIN, 0};
  return ::poll(&file, 1, 0) == 1;
}

}  // namespace

TEST_CASE("an event stays readable until it is cleared", "[core]") {
  EventFd event;
  CHECK_FALSE(is_readable(event));
  CHECK_FALSE(event.clear());
  event.ring();
  event.ring();
  CHECK(is_readable(event));
  CHECK(event.clear());
  CHECK_FALSE(is_readable(event));
  CHECK_FALSE(event.clear());
}

TEST_CASE("wait returns for an earlier ring and for a ring from another thread", "[core]") {
  EventFd event, answer;
  event.ring();
  event.wait();
  CHECK_FALSE(is_readable(event));
  std::thread other([&] {
    event.wait();
    answer.ring();
  });
  event.ring();
  answer.wait();
  other.join();
  CHECK_FALSE(is_readable(event));
}

TEST_CASE("wait_for returns with and without a ring", "[core]") {
  EventFd event;
  event.wait_for(0ms);
  event.ring();
  event.wait_for(24h);
  CHECK_FALSE(is_readable(event));
}
