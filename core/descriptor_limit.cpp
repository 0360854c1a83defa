#include "core/descriptor_limit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>

namespace troupe {

std::size_t descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);  // It fails only for an unknown resource.
  return static_cast<std::size_t>(limit.rlim_cur);
}

void raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

SpareDescriptor::SpareDescriptor() : spare_(open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

bool SpareDescriptor::is_needed(int error) { return error == EMFILE || error == ENFILE; }

bool SpareDescriptor::turn_away(int listening) {
  { const Descriptor given_up = std::move(spare_); }
  bool is_closed = false;
  {
    const Descriptor connection(accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    is_closed = static_cast<bool>(connection);
  }
  spare_ = Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
  return is_closed;
}

}  // namespace troupe
