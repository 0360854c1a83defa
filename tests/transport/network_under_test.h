#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/env.h"
#include "transport/network.h"

namespace troupe::transport {

/// A network under test: three processes on one machine, and the ways between them.
class NetworkUnderTest {
 public:
  virtual ~NetworkUnderTest() = default;
  /// `process` is 0, 1 or 2.
  virtual Network& network(int process) = 0;
  virtual Env& env(int process) = 0;
  /// Lets everything go on until the condition holds. Returns false if it does not hold in time.
  virtual bool run_until(const std::function<bool()>& condition) = 0;
  /// Returns an address that leads to a TCP address or endpoint, by a way that stop_ways() stops.
  virtual std::string way_to(const std::string& address) = 0;
  /// From now on nothing passes the ways any more, but no connection ends.
  virtual void stop_ways() = 0;
  /// Ends all connections that use the ways. New ones are possible.
  virtual void cut_ways() = 0;
};

/// A list that callbacks append to. Callbacks of channels may run on any thread.
template <class T>
class Noted {
 public:
  void add(T thing) {
    const std::lock_guard lock(mutex_);
    things_.push_back(std::move(thing));
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return things_.size();
  }
  T operator[](std::size_t i) const {
    const std::lock_guard lock(mutex_);
    return things_.at(i);
  }
  std::vector<T> all() const {
    const std::lock_guard lock(mutex_);
    return things_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<T> things_;
};

/// Long limits, so that a busy machine is not taken for a silent peer.
inline LinkOptions long_limits() {
  LinkOptions link;
  link.ask_every = std::chrono::seconds(5);
  link.silence = std::chrono::seconds(30);
  link.handshake = std::chrono::seconds(30);
  return link;
}

inline Message note(std::string type, std::uint64_t id = 0) {
  Message message;
  message.type = std::move(type);
  message.id = id;
  return message;
}

inline ServerOptions serving() {
  ServerOptions options;
  options.endpoint = "tcp://127.0.0.1:0";
  options.link = long_limits();
  return options;
}

inline DialOptions dialing(std::string endpoint) {
  DialOptions options;
  options.endpoint = std::move(endpoint);
  options.link = long_limits();
  options.backoff = {std::chrono::milliseconds(1), std::chrono::milliseconds(20)};
  return options;
}

}  // namespace troupe::transport
