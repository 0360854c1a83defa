#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transport/control/connections.h"
#include "transport/control/rate_limit.h"
#include "transport/control/zmq_parts.h"
#include "transport/wire/counters.h"

namespace troupe::transport {

/// A socket that listens, with its authentication and its connections. It tells its owner which
/// peers did not get in. Only this folder uses it, and from one thread after open().
class ListeningSocket {
 public:
  using Refused = std::function<void(const std::string& address, const std::string& why)>;

  /// `link`, `keys` and `allowed` outlive the socket. Without keys every peer gets in.
  struct Options {
    const std::string& endpoint;
    const LinkOptions& link;
    const std::optional<KeyPair>& keys;
    const AllowList& allowed;
  };

  ListeningSocket(const Options& options, Refused refused);
  /// Removes the socket file.
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  /// Calls `prepare` before it binds the socket.
  Status open(zmq::socket_type type, const std::function<void(zmq::socket_t&)>& prepare);

  zmq::socket_t& socket() { return socket_; }
  Connections& connections() { return *connections_; }
  /// Returns the endpoint with the real port, also if port 0 was asked for.
  const std::string& endpoint() const { return bound_; }

  /// Returns the items that a poll loop must wait for.
  std::vector<zmq_pollitem_t> items();
  /// Answers ZeroMQ's questions whether a peer gets in, and counts refused peers.
  void let_in(Counters& counters);
  /// Tells the owner, at most once a minute for each address.
  void tell_refused(const std::string& address, const std::string& why);

 private:
  Options options_;
  Refused refused_;
  RateLimit telling_;
  std::string bound_;

  // The context outlives its sockets.
  zmq::context_t context_{1};
  zmq::socket_t socket_;
  zmq::socket_t zap_;
  std::optional<Connections> connections_;
};

}  // namespace troupe::transport
