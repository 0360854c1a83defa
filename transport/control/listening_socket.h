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

/// A listening socket with admission, tracking of connections, and reports of refusals. For use in
/// this folder only, on one thread once it is open.
class ListeningSocket {
 public:
  using Refused = std::function<void(const std::string& address, const std::string& why)>;

  /// All references must outlive the socket. Without keys everybody is admitted.
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

  /// Calls `prepare` before it binds.
  Status open(zmq::socket_type type, const std::function<void(zmq::socket_t&)>& prepare);

  zmq::socket_t& socket() { return socket_; }
  Connections& connections() { return *connections_; }
  /// Returns the endpoint with its actual port.
  const std::string& endpoint() const { return bound_; }

  /// Returns what a poll loop must wait for, besides the caller's own items.
  std::vector<zmq_pollitem_t> items();
  /// Answers all pending admission requests and counts refusals.
  void let_in(Counters& counters);
  /// Reports a refusal, at most once a minute per address.
  void tell_refused(const std::string& address, const std::string& why);

 private:
  Options options_;
  Refused refused_;
  RateLimit telling_;
  std::string bound_;

  // The context must outlive its sockets.
  zmq::context_t context_{1};
  zmq::socket_t socket_;
  zmq::socket_t zap_;
  std::optional<Connections> connections_;
};

}  // namespace troupe::transport
