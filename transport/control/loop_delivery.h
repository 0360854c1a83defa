#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/env.h"
#include "transport/control/control_socket.h"

namespace troupe::transport {

/// Passes the callbacks of a socket from its thread to a loop, in order and with a bound.
class LoopDelivery {
 public:
  /// The loop outlives the delivery. LinkOptions::queue and LinkOptions::queue_bytes are the bound.
  /// `has_room` is called when it is not full any more, on the thread of the loop and under a lock:
  /// it must only wake the socket. It is not called after stop().
  LoopDelivery(Loop& loop, const LinkOptions& link, std::function<void()> has_room);
  ~LoopDelivery() { stop(); }
  LoopDelivery(const LoopDelivery&) = delete;
  LoopDelivery& operator=(const LoopDelivery&) = delete;

  /// Begins to call. Calls that were added before wait for it. Any thread may call it.
  void start();
  /// Adds a call, even if it is full. `bytes` is the memory that it needs until then.
  void add(std::size_t bytes, Loop::Task call);
  /// Returns whether the bound is reached. The socket should then read no more.
  bool is_full() const;
  /// Drops all calls. When it returns, no call runs. Must not be called by a call.
  void stop();

 private:
  struct State;
  static void post(const std::shared_ptr<State>& state);
  static void run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;  // Shared with the tasks of the loop.
};

/// Returns callbacks for a socket, which pass everything on to those of `events` by a delivery.
/// Both outlive what it returns.
ServerEvents delivered(const ServerEvents& events, LoopDelivery& delivery);
ClientEvents delivered(const ClientEvents& events, LoopDelivery& delivery);

}  // namespace troupe::transport
