#pragma once

#include <atomic>
#include <list>
#include <string>
#include <thread>

#include "core/threads/event_fd.h"

namespace troupe::tests {

/// Passes on what comes on a port of its own to another one, both ways, and cuts connections.
class Proxy {
 public:
  /// Both as "127.0.0.1:4700".
  explicit Proxy(const std::string& target);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  const std::string& address() const { return address_; }
  /// All connections that are there end, with what is on its way; new ones are let in.
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
  std::list<Pair> pairs_;  // The thread's own.
  std::thread thread_;
};

}  // namespace troupe::tests
