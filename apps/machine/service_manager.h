#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/result.h"
#include "core/threads/event_fd.h"

namespace troupe::apps {

/// Reports the state of this process to the service manager that started it, for instance systemd.
///
/// The protocol is stable, and sd_notify(3) documents it for direct use: one datagram to the Unix
/// socket that NOTIFY_SOCKET names. So the program needs no libsystemd. Without NOTIFY_SOCKET
/// nothing is sent. Any thread may call the functions. A message that cannot be sent is reported on
/// stderr and changes nothing else.
class ServiceManager {
 public:
  /// Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
  static Result<ServiceManager> from_environment();

  /// Reports that the service has started and can be used.
  void ready() const;
  /// Sends one line for `systemctl status`.
  void status(const std::string& text) const;
  void stopping() const;
  /// Waits until the bell rings. Calls `check` twice in each watchdog interval and then tells the
  /// service manager that the process is alive. If `check` hangs, the watchdog expires. Without a
  /// watchdog `check` is not called.
  void wait(EventFd& bell, const std::function<void()>& check) const;

 private:
  void send(const std::string& message) const;

  std::string socket_;  // Empty if there is no service manager.
  // The interval between two watchdog messages; 0: no watchdog.
  std::chrono::milliseconds interval_{0};
};

}  // namespace troupe::apps
