#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "transport/control/control_socket.h"
#include "transport/control/rate_limit.h"
#include "transport/control/strikes.h"
#include "transport/wire/counters.h"
#include "transport/wire/refusal.h"

/// The knowledge of a listening end of the control plane about its peers. It uses no socket and no
/// clock, so a simulated network can use it as well.
namespace troupe::transport {

/// A connection of a listening end.
struct Connection {
  std::uint64_t number = 0;  // Never reused; 0 means none.
  int descriptor = -1;       // May belong to another connection by now.
  std::string far_end;
  std::optional<uid_t> user;  // The peer's user, if that matters and the system knows it.
};

/// Returns "10.0.0.7" for "10.0.0.7:40112", since each connection has another port.
std::string host_of(const std::string& address);

/// Counts the open connections of a listening end and chooses which ones are too many.
class Crowd {
 public:
  struct TooMany {
    std::uint64_t number = 0;  // The connection to end.
    std::string why;
  };

  explicit Crowd(const CrowdLimits& limits) : limits_(limits) {}

  /// Adds a connection on which nobody is admitted yet. Returns the connections to end, which it
  /// has removed: the oldest of those that wait to be admitted, which had most time to say hello;
  /// or the new one, if there are too many in total.
  std::vector<TooMany> add(std::uint64_t number, const std::string& far_end);
  /// Notes that the peer of a connection was admitted.
  void admitted(std::uint64_t number);
  void remove(std::uint64_t number);

 private:
  CrowdLimits limits_;
  std::map<std::uint64_t, std::string> open_;                    // The addresses.
  std::set<std::uint64_t> strangers_;                            // The first is the oldest.
  std::map<std::string, std::set<std::uint64_t>> strangers_of_;  // Keyed by address.
};

/// The most parts of a message that a socket passes to ControlPeers: three, the payload, and one
/// more to detect an excess.
constexpr std::size_t most_parts_kept = 3 + 8 + 1;

/// The sessions of a listening end. Decides about each message whether it is passed on, refused,
/// or ends the session, and which peers are quarantined. One thread uses it.
class ControlPeers {
 public:
  /// Names a connection for send().
  using Route = std::string;

  /// The sender of the message that hear() handles.
  struct Origin {
    Connection connection;  // Number 0 if it has ended already.
    std::string key;        // Empty without keys.
  };

  /// The socket, as far as this class uses it.
  class Socket {
   public:
    enum class Sent { yes, full, gone };

    virtual Origin origin() = 0;
    virtual Sent send(const Route& to, const std::vector<std::string>& parts) = 0;
    /// Ends a connection, which lost() reports later.
    virtual void shut(const Connection& connection) = 0;
    /// Notes that the peer of a connection was admitted.
    virtual void admitted(const Connection& connection) = 0;

   protected:
    ~Socket() = default;
  };

  /// Calls `events` from within the functions below. Every reference outlives it.
  ControlPeers(ServerOptions options, ServerEvents events, Counters& counters, Socket& socket);

  /// Sets the time for all following calls, and ends the connections of rejected peers whose time
  /// to read the reason is over.
  void set_time(TimePoint now);
  /// Returns when set_time() must be called next.
  std::optional<TimePoint> next_duty() const;

  bool has_session(const Route& from) const { return sessions_.contains(from); }
  /// Returns whether the peer was told that it is rejected, so that nothing more is read from it.
  bool is_rejected(const Route& from) const { return farewells_.contains(from); }

  /// Handles a message. `all_kept`: it has no more than these parts.
  void hear(const Route& from, const std::vector<std::string_view>& parts, bool all_kept);
  /// Notes that a connection has ended, after all its messages.
  void lost(const Connection& connection);

  // As ControlServer's functions.
  void send(PeerId peer, const std::vector<std::string>& parts);
  void cut(PeerId peer, const std::string& why);
  void strike(PeerId peer, const std::string& why);
  void allow(AllowList allowed);
  const AllowList& allowed() const { return options_.allowed; }

 private:
  struct Session {
    Peer peer;
    Route route;
    Connection connection;
  };
  struct Farewell {
    TimePoint time;
    Connection connection;
  };

  void open_session(const Route& from, Message message);
  void pass_on(const Peer& peer, Message message);
  void refuse(const Route& from, const Message& question, const Refusal& why);
  void bad(const Route& from, const Session* session, Count count, const std::string& why);
  void strike_session(const Session& session, const std::string& why);
  void refuse_version(const Route& from, const Session* session, const Prelude& prelude);
  void reject(const Route& from, const Connection& connection, const Message& why);
  bool say_farewell(const Route& from, const Connection& connection);
  void end_session(Route route, Gone gone, const std::string& why);
  void forget(Route route, Gone gone, const std::string& why);
  void tell_refused(const std::string& address, const std::string& why) const;
  Roles roles_of(const std::string& key) const;
  Session* session_of(PeerId peer);

  ServerOptions options_;
  ServerEvents events_;
  Counters& counters_;
  Socket& socket_;
  TimePoint now_;
  PeerId last_peer_ = 0;
  std::unordered_map<Route, Session> sessions_;
  std::unordered_map<PeerId, Route> by_id_;
  std::unordered_map<std::uint64_t, Route> by_connection_;
  std::map<Route, Farewell> farewells_;
  Strikes strikes_;
  RateLimit hellos_;
};

}  // namespace troupe::transport
