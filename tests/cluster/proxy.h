#pragma once

#include <atomic>
#include <list>
#include <string>
#include <thread>

#include "core/threads/event_fd.h"

namespace troupe::tests {

/// A TCP proxy that forwards its own port to another one, and can cut connections.
class Proxy {
 public:
  /// Addresses look like "127.0.0.1:4700".
  explicit Proxy(const std::string& target);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  const std::string& address() const { return address_; }
  /// Ends all present connections and drops data under way. New connections are accepted.
  void cut();

 private:
  struct Pair;

  void run();
  void let_in();

  std::string address_;
  int target_port_ = 0;
  int listener_ = -1;
  EventFd wake_;
  std::atomic<bool> stop_ = false, cut_ = false;
  std::list<Pair> pairs_;  // Used only on the thread.
  std::thread thread_;
};

}  // namespace troupe::tests
