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

/// A socket that listens, with what goes with each: who gets in, which connections there are, and
/// whom the owner is told of who did not get in. Not for others than this folder; used from one
/// thread once it is open.
class ListeningSocket {
 public:
  using Refused = std::function<void(const std::string& address, const std::string& why)>;

  /// `link`, `keys` and `allowed` outlive it; without keys whoever dials gets in.
  struct Options {
    const std::string& endpoint;
    const LinkOptions& link;
    const std::optional<KeyPair>& keys;
    const AllowList& allowed;
  };

  ListeningSocket(const Options& options, Refused refused);
  /// Leaves no file behind.
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  /// `prepare` is called before the socket is bound.
  Status open(zmq::socket_type type, const std::function<void(zmq::socket_t&)>& prepare);

  zmq::socket_t& socket() { return socket_; }
  Connections& connections() { return *connections_; }
  /// With the port that was taken where 0 was asked for.
  const std::string& endpoint() const { return bound_; }

  /// What a poll loop waits for, beside what is its own.
  std::vector<zmq_pollitem_t> items();
  /// Answers who asks to be let in, and counts who was not.
  void let_in(Counters& counters);
  /// At most once a minute for each address.
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
