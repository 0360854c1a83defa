#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transport/control/backoff.h"
#include "transport/control/control_socket.h"
#include "transport/control/zmq_parts.h"

namespace troupe::transport {

/// Keeps a dialing socket connected: a new socket for each try, with a back-off between them. Not
/// for others than this folder; used from one thread.
class Dialer {
 public:
  enum class What { connected, failed, ended };
  struct News {
    What what;
    std::string why;
  };
  using Prepare = std::function<void(zmq::socket_t&)>;

  /// `prepare` is called for each new socket before it dials.
  Dialer(zmq::context_t& context, DialOptions options, zmq::socket_type type, Prepare prepare);

  /// An error where dialing can never succeed.
  Status check();

  /// Null between two tries.
  zmq::socket_t* socket() { return link_ ? &link_->socket : nullptr; }
  bool connected() const { return link_ && link_->connected; }

  /// What a poll loop waits for.
  void wait_for_news(std::vector<zmq_pollitem_t>& items);
  std::chrono::milliseconds patience() const;

  /// What has happened, one thing at a time; dials when it is time to. After `ended` the socket may
  /// still be read, until hang_up().
  std::optional<News> next();
  /// Ends the connection; another one will be made.
  void hang_up();
  /// The other end has spoken as a head does: the next back-off begins small again.
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
  std::optional<TimePoint> deadline_;  // Of this try, or for the next one.
  Backoff backoff_;
};

}  // namespace troupe::transport
