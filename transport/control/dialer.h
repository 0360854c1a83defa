#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transport/control/backoff.h"
#include "transport/control/control_socket.h"
#include "transport/control/zmq_parts.h"

namespace troupe::transport {

/// Keeps a dialing socket connected: each attempt uses a new socket, after a back-off. For use in
/// this folder only, on one thread.
class Dialer {
 public:
  enum class What { connected, failed, ended };
  struct News {
    What what;
    std::string why;
  };
  using Prepare = std::function<void(zmq::socket_t&)>;

  /// Calls `prepare` for each new socket before it dials.
  Dialer(zmq::context_t& context, DialOptions options, zmq::socket_type type, Prepare prepare);

  /// Fails if dialing can never succeed.
  Status check();

  /// Returns null between two attempts.
  zmq::socket_t* socket() { return link_ ? &link_->socket : nullptr; }
  bool connected() const { return link_ && link_->connected; }

  /// Adds what a poll loop must wait for.
  void wait_for_news(std::vector<zmq_pollitem_t>& items);
  std::chrono::milliseconds patience() const;

  /// Returns one event at a time, and dials when it is time to. After `ended` the socket can still
  /// be read, until hang_up().
  std::optional<News> next();
  /// Ends the connection. Another one will be made.
  void hang_up();
  /// Resets the back-off, after the other end has proved to be a head.
  void succeed() { backoff_.reset(); }

 private:
  struct Link {
    Link(zmq::context_t& context, zmq::socket_type type) : socket(context, type) {}

    zmq::socket_t socket;
    std::optional<Monitor> monitor;
    bool reached = false;    // Somebody listens: the handshake can begin.
    bool connected = false;  // It succeeded.
    bool ended = false;
  };

  std::optional<News> dial();
  News fail(const std::string& why);
  std::optional<News> follow(const Monitor::Event& event);

  zmq::context_t& context_;
  DialOptions options_;
  zmq::socket_type type_;
  Prepare prepare_;
  Endpoint endpoint_;
  std::optional<Link> link_;
  std::optional<TimePoint> deadline_;  // For this attempt, or for the start of the next.
  Backoff backoff_;
};

}  // namespace troupe::transport
