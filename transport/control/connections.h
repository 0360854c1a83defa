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
  std::uint64_t number = 0;  // Never used again; 0 is none.
  int descriptor = -1;       // May be another's by now.
  std::string far_end;
  std::optional<uid_t> user;  // At the far end, where that decides and the system told.
};

/// The connections of a listening socket, of which ZeroMQ tells by its monitor alone. Not for
/// others than this folder; used from one thread.
class Connections {
 public:
  enum class What {
    ended,
    not_accepted,
    crowded_out,  // One connection too many: it was shut, and will end.
    foreign,      // The connection of another user: it was shut, and will end.
  };
  /// Whose connections are believed: with keys anybody's, as the keys prove who somebody is.
  enum class Whose { anybody, own_user };
  struct News {
    What what;
    Connection connection;  // That has ended, or was shut.
    std::string why;        // Why it was shut, or not accepted.
  };

  Connections(zmq::context_t& context, zmq::socket_t& socket, const CrowdLimits& limits,
              Whose whose)
      : limits_(limits), whose_(whose), monitor_(context, socket) {}

  /// Readable when there is news.
  zmq::socket_t& socket() { return monitor_.socket(); }
  /// What has happened, one thing at a time. A connection that has ended is known until forget().
  std::optional<News> next();
  void forget(const Connection& connection);

  /// The connection on which a message has just come, by its descriptor; number 0 where it is not
  /// known any more. A descriptor is used again: this is the newest one, as the messages of one
  /// that has ended are read before next() tells of what came later.
  Connection find(int descriptor);
  /// Whether a message that comes by this descriptor may be another user's. ZeroMQ tells of a
  /// message only the descriptor that it came by, and the descriptor may since have become another
  /// connection's. So one that another user has had is in doubt until everything that may have
  /// come by it was read.
  bool is_in_doubt(int descriptor) const { return in_doubt_.contains(descriptor); }
  /// The socket has just had nothing to read.
  void all_read();
  /// Somebody was admitted on this connection, which is no stranger's any more.
  void admitted(const Connection& connection);
  /// Something whole has come on a connection.
  void heard(int descriptor);
  /// Whether nothing whole has ever come on it.
  bool silent(const Connection& connection) const;

  /// ZeroMQ keeps the parts of a message until the last one has come, however many they are. Those
  /// on which more than any message may have has come without one being whole; told when it is
  /// time to look again, after all that is whole was read. Only TCP can tell.
  std::vector<Connection> endless(TimePoint now);
  /// When it is time to look, or now where news was read that next() has not told; nothing where
  /// there is nobody to look at.
  std::optional<TimePoint> next_look() const;

 private:
  struct Watch {
    Connection connection;
    std::uint64_t bytes = 0;  // That had come with the last whole message.
    bool whole = false;       // One has come, since the last look,
    bool ever = false;        // or ever.
    bool is_shut = false;     // By this end.
    bool has_ended = false;
  };

  /// Takes all that the monitor tells, so that what happened before a message is known.
  void read_monitor();
  void accepted(int descriptor);
  /// Shuts the connection of another user.
  void turn_out(const Connection& connection);
  void not_accepted(int error);
  /// Shuts connections until no limit is exceeded: of strangers the one that came first, which had
  /// the most time to say who it is; of all connections the newest.
  void thin_out(const Connection& newest);
  void crowd_out(std::uint64_t number, const std::string& why);
  void forget_stranger(const Connection& connection);

  CrowdLimits limits_;
  Whose whose_;
  std::set<int> in_doubt_;  // Descriptors.
  Descriptor listening_;    // ZeroMQ's, once more.
  SpareDescriptor spare_;
  std::set<std::uint64_t> strangers_;  // Numbers, so the first is the oldest.
  std::map<std::string, std::set<std::uint64_t>> strangers_of_;  // By address.
  std::size_t open_ = 0;  // Connections that were neither shut by this nor have ended.
  Monitor monitor_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Watch> connections_;  // By number.
  std::map<int, std::uint64_t> newest_;         // By descriptor.
  std::deque<News> news_;
  TimePoint next_look_;
};

/// "10.0.0.7" of "10.0.0.7:40112": the port is another one for each connection.
std::string host_of(const std::string& address);

}  // namespace troupe::transport
