#include "apps/machine/service_manager.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace troupe::apps {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Result<std::int64_t> positive_variable(const char* name) {
  const auto text = variable(name);
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value <= 0)
    return Error{std::string(name) + " is '" + text +
                 "', but must be a positive integer; unset it if no service manager started this "
                 "process"};
  return value;
}

/// Returns the interval between two watchdog messages, half of what the watchdog allows; 0 without
/// a watchdog.
Result<std::chrono::milliseconds> watchdog_interval() {
  if (variable("WATCHDOG_USEC").empty()) return std::chrono::milliseconds(0);
  const auto allowed = positive_variable("WATCHDOG_USEC");
  if (!allowed) return allowed.error();
  if (!variable("WATCHDOG_PID").empty()) {
    const auto process = positive_variable("WATCHDOG_PID");
    if (!process) return process.error();
    // The watchdog is meant for another process.
    if (*process != getpid()) return std::chrono::milliseconds(0);
  }
  return std::chrono::milliseconds(std::clamp<std::int64_t>(*allowed / 2000, 1, 3'600'000));
}

}  // namespace

Result<ServiceManager> ServiceManager::from_environment() {
  ServiceManager manager;
  manager.socket_ = variable("NOTIFY_SOCKET");
  if (manager.socket_.empty()) return manager;
  const bool is_address = manager.socket_.size() > 1 &&
                          (manager.socket_.front() == '/' || manager.socket_.front() == '@');
  if (!is_address || manager.socket_.size() >= sizeof(sockaddr_un::sun_path))
    return Error{"NOTIFY_SOCKET is '" + manager.socket_ +
                 "', but must be the path of a Unix socket, or @ and the name of an abstract one, "
                 "of at most " +
                 std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                 " bytes; unset it if no service manager started this process"};
  const auto interval = watchdog_interval();
  if (!interval) return interval.error();
  manager.interval_ = *interval;
  return manager;
}

void ServiceManager::ready() const { send("READY=1"); }
void ServiceManager::status(const std::string& text) const {
  std::string line = "STATUS=" + text;
  std::ranges::replace(line, '\n', ' ');  // A newline would begin another assignment.
  send(line);
}
void ServiceManager::stopping() const { send("STOPPING=1"); }

void ServiceManager::wait(EventFd& bell, const std::function<void()>& check) const {
  if (interval_.count() > 0) {
    pollfd ring{bell.descriptor(), POLLIN, 0};
    do {
      check();
      send("WATCHDOG=1");
    } while (poll(&ring, 1, static_cast<int>(interval_.count())) <= 0);
  }
  bell.wait();
}

void ServiceManager::send(const std::string& message) const {
  if (socket_.empty()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_.front() == '@') address.sun_path[0] = '\0';  // An abstract name.
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  const int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const timeval patience{1, 0};  // A manager that reads nothing must not stop the service.
  if (file >= 0) (void)setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const bool is_sent = file >= 0 && sendto(file, message.data(), message.size(), MSG_NOSIGNAL,
                                           reinterpret_cast<const sockaddr*>(&address), size) >= 0;
  const int error = errno;
  if (file >= 0) close(file);
  if (!is_sent)
    std::fprintf(stderr, "warning: NOTIFY_SOCKET %s: the service manager was not told %s: %s\n",
                 socket_.c_str(), message.substr(0, message.find('\n')).c_str(),
                 std::strerror(error));
}

}  // namespace troupe::apps
