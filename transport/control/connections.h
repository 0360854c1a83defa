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
#include "transport/control/control_peers.h"
#include "transport/control/strikes.h"
#include "transport/control/zmq_parts.h"

namespace troupe::transport {

/// Tracks the connections of a listening socket, which ZeroMQ reports only by its monitor. For use
/// in this folder only, on one thread.
class Connections {
 public:
  enum class What {
    ended,
    not_accepted,
    crowded_out,  // One connection too many; it was shut and will end.
    foreign,      // Another user's connection; it was shut and will end.
  };
  /// The users whose connections are accepted. With keys all users, since keys prove identity.
  enum class Whose { anybody, own_user };
  struct News {
    What what;
    Connection connection;  // The connection that ended or was shut.
    std::string why;        // Why it was shut or not accepted.
  };

  Connections(zmq::context_t& context, zmq::socket_t& socket, const CrowdLimits& limits,
              Whose whose)
      : crowd_(limits), whose_(whose), monitor_(context, socket) {}

  /// Becomes readable when there is news.
  zmq::socket_t& socket() { return monitor_.socket(); }
  /// Returns one event at a time. A connection that has ended stays known until forget().
  std::optional<News> next();
  void forget(const Connection& connection);

  /// Returns the connection of the message that was just received, by its descriptor; number 0 if
  /// it is not known any more. Descriptors are reused, and this returns the newest connection:
  /// messages of an ended connection are read before next() reports later events.
  Connection find(int descriptor);
  /// Returns whether a message from this descriptor could be another user's. ZeroMQ reports only
  /// the descriptor of a message, which may belong to another connection by now. So a descriptor
  /// that another user has had is in doubt until everything that came by it was read.
  bool is_in_doubt(int descriptor) const { return in_doubt_.contains(descriptor); }
  /// Notes that the socket has nothing to read.
  void all_read();
  /// Notes that the peer of this connection was admitted.
  void admitted(const Connection& connection);
  /// Notes that a complete message has come on a connection.
  void heard(int descriptor);
  /// Returns whether no complete message has ever come on it.
  bool silent(const Connection& connection) const;

  /// Returns connections that send message parts without end, which ZeroMQ would buffer: more bytes
  /// have come than any message may have, and no message is complete. Call it at next_look(), after
  /// all complete messages were read. Works for TCP only.
  std::vector<Connection> endless(TimePoint now);
  /// Returns the time of the next call of endless(), or now if next() has news, or nothing if there
  /// are no connections.
  std::optional<TimePoint> next_look() const;

 private:
  struct Watch {
    Connection connection;
    std::uint64_t bytes = 0;  // Bytes received up to the last complete message.
    bool whole = false;       // A message was completed since the last look,
    bool ever = false;        // or at any time.
    bool is_shut = false;     // Shut by this end.
    bool has_ended = false;
  };

  /// Reads all events, so that everything that happened before a message is known.
  void read_monitor();
  void accepted(int descriptor);
  /// Shuts another user's connection.
  void turn_out(const Connection& connection);
  void not_accepted(int error);

  Crowd crowd_;
  Whose whose_;
  std::set<int> in_doubt_;  // Descriptors.
  Descriptor listening_;    // A duplicate of ZeroMQ's.
  SpareDescriptor spare_;
  Monitor monitor_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Watch> connections_;  // Keyed by number.
  std::map<int, std::uint64_t> newest_;         // Keyed by descriptor.
  std::deque<News> news_;
  TimePoint next_look_;
};

}  // namespace troupe::transport
