#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/descriptor.h"
#include "core/descriptor_limit.h"
#include "transport/control/strikes.h"
#include "transport/control/zmq_parts.h"

namespace troupe::transport {

/// One of the connections of a listening socket.
struct Connection {
  std::uint64_t number = 0;  // Never used for another connection; 0 is none.
  int descriptor = -1;       // Another connection may have it by now.
  std::string far_end;
  std::optional<uid_t> user;  // The user at the far end, if that matters and is known.
};

/// The connections of a listening socket. ZeroMQ reports them through its monitor only. Only this
/// folder uses it, and from one thread.
class Connections {
 public:
  enum class What {
    ended,
    not_accepted,
    crowded_out,  // One connection too many: it was shut, and will end.
    foreign,      // The connection of another user: it was shut, and will end.
  };
  /// The users whose connections are accepted. With keys it is anybody, since keys identify peers.
  enum class Whose { anybody, own_user };
  struct News {
    What what;
    Connection connection;  // The connection that ended or was shut.
    std::string why;        // The reason why it was shut or not accepted.
  };

  Connections(zmq::context_t& context, zmq::socket_t& socket, const CrowdLimits& limits,
              Whose whose)
      : limits_(limits), whose_(whose), monitor_(context, socket) {}

  /// Readable when there is news.
  zmq::socket_t& socket() { return monitor_.socket(); }
  /// Returns the next event. A connection that has ended stays known until forget().
  std::optional<News> next();
  void forget(const Connection& connection);

  /// Returns the connection on which a message has just come, by its descriptor; its number is 0 if
  /// it is not known any more. Descriptors are reused, and this is the newest connection with that
  /// descriptor: the owner reads all messages of an ended connection before next() reports a later
  /// one.
  Connection find(int descriptor);
  /// Whether a message with this descriptor may come from another user. ZeroMQ reports only the
  /// descriptor of a message, and a later connection may have the same one. A descriptor that
  /// another user had stays in doubt until all messages that may have come by it are read.
  bool is_in_doubt(int descriptor) const { return in_doubt_.contains(descriptor); }
  /// Notes that the socket has nothing to read.
  void all_read();
  /// Notes that a peer was admitted on this connection; it does not count as a stranger any more.
  void admitted(const Connection& connection);
  /// Notes that a whole message has come on a connection.
  void heard(int descriptor);
  /// Whether no whole message has ever come on the connection.
  bool silent(const Connection& connection) const;

  /// Returns the connections that sent more bytes than any message may have without completing one.
  /// ZeroMQ keeps all parts of a message until the last one comes. Call it at next_look(), after
  /// all whole messages were read. It works for TCP only.
  std::vector<Connection> endless(TimePoint now);
  /// Returns the time of the next look, or now if next() has more events. Returns nothing if there
  /// is no connection to look at.
  std::optional<TimePoint> next_look() const;

 private:
  struct Watch {
    Connection connection;
    std::uint64_t bytes = 0;  // Bytes received up to the last whole message.
    bool whole = false;       // A whole message has come since the last look,
    bool ever = false;        // or ever.
    bool is_shut = false;     // This end has shut it.
    bool has_ended = false;
  };

  /// Reads all events of the monitor, so that the events before a message are known.
  void read_monitor();
  void accepted(int descriptor);
  /// Shuts the connection of another user.
  void turn_out(const Connection& connection);
  void not_accepted(int error);
  /// Shuts connections until all limits hold. Of strangers it shuts the oldest, which had the most
  /// time to say hello; of all connections the newest.
  void thin_out(const Connection& newest);
  void crowd_out(std::uint64_t number, const std::string& why);
  void forget_stranger(const Connection& connection);

  CrowdLimits limits_;
  Whose whose_;
  std::set<int> in_doubt_;  // Descriptors.
  Descriptor listening_;    // A duplicate of ZeroMQ's descriptor.
  SpareDescriptor spare_;
  std::set<std::uint64_t> strangers_;  // Numbers of connections: the first is the oldest.
  std::map<std::string, std::set<std::uint64_t>> strangers_of_;  // Grouped by address.
  std::size_t open_ = 0;  // Connections that neither end has closed.
  Monitor monitor_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Watch> connections_;  // Keyed by the number of the connection.
  std::map<int, std::uint64_t> newest_;         // Keyed by descriptor.
  std::deque<News> news_;
  TimePoint next_look_;
};

/// Returns "10.0.0.7" for "10.0.0.7:40112". Each connection has another port.
std::string host_of(const std::string& address);

}  // namespace troupe::transport
