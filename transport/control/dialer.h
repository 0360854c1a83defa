#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transport/control/backoff.h"
#include "transport/control/control_socket.h"
#include "transport/control/zmq_parts.h"

namespace troupe::transport {

/// Keeps a dialing socket connected. Each try uses a new socket, with a back-off between tries.
/// Only this folder uses it, and from one thread.
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

  /// Returns null between two tries.
  zmq::socket_t* socket() { return link_ ? &link_->socket : nullptr; }
  bool connected() const { return link_ && link_->connected; }

  /// Adds the items that a poll loop waits for.
  void wait_for_news(std::vector<zmq_pollitem_t>& items);
  std::chrono::milliseconds patience() const;

  /// Returns the next event, and dials when it is time to. After `ended` the owner may still read
  /// the socket, until hang_up().
  std::optional<News> next();
  /// Ends the connection. The dialer makes another one.
  void hang_up();
  /// Notes that the other end is a head: the next back-off starts small again.
  void succeed() { backoff_.reset(); }

 private:
  struct Link {
    Link(zmq::context_t& context, zmq::socket_type type) : socket(context, type) {}

    zmq::socket_t socket;
    std::optional<Monitor> monitor;
    bool connected = false;
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
  std::optional<TimePoint> deadline_;  // The end of this try, or the start of the next one.
  Backoff backoff_;
};

}  // namespace troupe::transport
