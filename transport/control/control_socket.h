#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/descriptor_limit.h"
#include "core/result.h"
#include "transport/control/allow_list.h"
#include "transport/control/backoff.h"
#include "transport/control/rate_limit.h"
#include "transport/control/strikes.h"
#include "transport/keys.h"
#include "transport/wire/counters.h"
#include "transport/wire/message_types.h"
#include "transport/wire/wire.h"

/// The two ends of the control plane: the head listens, and all other processes dial it. Each end
/// has its own thread, which does all of the work. Any thread may send.
///
/// A connection that ends may lose the last messages, and neither end learns which. delivery.h
/// numbers messages and sends them again.
namespace troupe::transport {

/// How many connections a listening socket may have. ZeroMQ accepts every connection, so these
/// limits end connections that were just accepted.
struct CrowdLimits {
  std::size_t connections = 0;  // In total.
  std::size_t strangers = 0;    // Connections on which nobody has been admitted yet,
  std::size_t of_address = 0;   // and how many of them may come from one address.

  /// Limits that leave enough descriptors for runs, saves and tensors.
  static CrowdLimits of(std::size_t descriptors);
};

/// Options of a link. Messages are encrypted (CURVE) if there are keys, and plain otherwise.
struct LinkOptions {
  /// Whether plain messages may leave this machine. Anybody on the way can read and forge them.
  enum class Plain { within_machine, anywhere };

  Plain plain = Plain::within_machine;
  /// The most messages that wait for one peer; the socket cuts off a slower peer. It is more than
  /// the window of delivery.h, because a whole window may be sent again at once.
  int high_water = 4096;
  /// The most messages, and the most bytes, that wait for the thread of this end.
  std::size_t queue = 10'000;
  std::size_t queue_bytes = std::size_t{256} << 20;
  /// A peer that is silent for `silence` is gone, even if its computer keeps the connection. The
  /// dialing end sends a ping every `ask_every`, with the time that it may be silent itself.
  /// ZeroMQ's threads send and answer pings, so a thread of ours that hangs goes unnoticed. The
  /// times are long: a busy machine may be late, and the end of a process closes the connection at
  /// once. Hundreds of nodes send heartbeats anyway, so more pings would only add up.
  std::chrono::milliseconds ask_every{500};
  std::chrono::milliseconds silence{2000};
  /// The time limit of the handshake, from the start of the connection.
  std::chrono::milliseconds handshake{5000};
  CrowdLimits crowd = CrowdLimits::of(descriptor_limit());
};

/// Why a peer is gone.
enum class Gone {
  closed,      // The connection ended, or the peer was silent for too long.
  too_slow,    // The peer did not read its messages.
  struck_off,  // The peer sent too many bad messages.
  cut,         // This end ended the connection.
};

/// The number of a session, from its hello to its end. No other session ever has it.
using PeerId = std::uint64_t;

struct Peer {
  PeerId id = 0;
  std::string address;            // "10.0.0.7:40112", or "process 4711" for ipc.
  std::optional<uid_t> user;      // The user of this machine, for a plain local connection.
  std::string key;                // Its public key; empty for a plain connection.
  std::string host;               // Its host in the allow-list; empty for a plain connection.
  Roles roles;                    // A plain connection has all roles that dial.
  std::uint64_t incarnation = 0;  // The incarnation in its hello.
};

/// Callbacks of the head's end. Its thread calls them one at a time. They may be empty, must return
/// soon, and must not destroy the socket.
struct ServerEvents {
  /// A peer has opened a session. Its hello comes as the first message.
  std::function<void(const Peer&)> connected;
  /// A message has come. Its type is known, and the peer may send it.
  std::function<void(const Peer&, Message)> message;
  /// A session has ended. Called once for each peer that connected, after its last message.
  std::function<void(const Peer&, Gone, const std::string& why)> gone;
  /// The socket refused or dropped something. Called at most once a minute for each address.
  std::function<void(const std::string& address, const std::string& why)> refused;
};

struct ServerOptions {
  std::string endpoint;         // As endpoint.h has it.
  std::optional<KeyPair> keys;  // Our keys. With keys, only peers on the list get in.
  AllowList allowed;
  LinkOptions link;
  StrikeRules strikes;
  Rate hellos_of_address = {.per_second = 10,
                            .at_once = 1024};  // A whole cluster may share one address.
  Rate hellos = {.per_second = 2000, .at_once = 2000};
  int backlog = 4096;  // Connections that wait for accept().
};

/// The head's end (ROUTER). It numbers the peers itself and identifies them by their keys, never by
/// the names that they give themselves.
class ControlServer {
 public:
  static Result<std::unique_ptr<ControlServer>> bind(ServerOptions options, ServerEvents events);
  /// Closes all connections without a message.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  /// Returns the endpoint with the real port, also if port 0 was asked for.
  const std::string& endpoint() const;

  /// Sends messages in order, from any thread. Fails if the message cannot be encoded or the queue
  /// is full. A peer that is gone is no error: `gone` reports it.
  Status send(PeerId peer, const Message& message);

  /// Ends a connection after the messages that were sent before. Any thread may call it.
  Status cut(PeerId peer, std::string why);
  /// Counts a strike for a peer whose message is wrong for a reason that only the caller knows. Any
  /// thread may call it.
  Status strike(PeerId peer, std::string why);

  /// Replaces the list of keys that may dial. Ends the sessions of keys that the list has no
  /// longer, or has with other roles or another host. Any thread may call it.
  Status allow(AllowList allowed);

  const Counters& counters() const;

 private:
  class Loop;
  explicit ControlServer(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop_;
};

/// Callbacks of the dialing end, under the rules of ServerEvents.
struct ClientEvents {
  /// The connection is made; send hello now.
  std::function<void()> connected;
  std::function<void(Message)> message;
  /// The connection has ended. The socket makes another one.
  std::function<void(Gone, const std::string& why)> gone;
  /// A connection attempt has failed, or the socket dropped a message.
  std::function<void(const std::string& why)> refused;
};

struct DialOptions {
  std::string endpoint;
  std::optional<KeyPair> keys;  // Our keys.
  std::string head_key;         // The public key of the head, if there are keys.
  LinkOptions link;
  BackoffRules backoff;
  std::uint64_t seed = 0;  // The seed of the back-off; each process needs another one.
};

/// The end of a node, a daemon or a client (DEALER). It dials again, with a back-off, whenever the
/// connection ends.
class ControlClient {
 public:
  static Result<std::unique_ptr<ControlClient>> dial(DialOptions options, ClientEvents events);
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  /// Sends a message from any thread. Fails if the message cannot be encoded, there is no
  /// connection or the queue is full.
  Status send(const Message& message);

  const Counters& counters() const;

 private:
  class Loop;
  explicit ControlClient(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop_;
};

}  // namespace troupe::transport
