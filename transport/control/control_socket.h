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
#include "transport/keys/keys.h"
#include "transport/wire/counters.h"
#include "transport/wire/message_types.h"
#include "transport/wire/wire.h"

/// The two ends of the control plane: the head listens, and all others dial it. A Network
/// (transport/network.h) makes them and says how it calls the callbacks. Any thread may send.
///
/// Messages sent shortly before a connection ends may be lost, and neither end learns which.
/// delivery.h numbers messages and sends them again.
namespace troupe::transport {

/// Limits for the connections of a listening socket. ZeroMQ accepts every connection, so the limits
/// end connections after they were accepted.
struct CrowdLimits {
  std::size_t connections = 0;  // In total.
  std::size_t strangers = 0;    // Connections on which nobody was admitted yet,
  std::size_t of_address = 0;   // and how many of them one address may have.

  /// Returns limits that leave enough descriptors for runs, saves and tensors.
  static CrowdLimits of(std::size_t descriptors);
};

/// Options of both ends. Messages are encrypted by CURVE if there are keys.
struct LinkOptions {
  /// Whether unencrypted messages may leave this machine. Anybody could read and forge them.
  enum class Plain { within_machine, anywhere };

  Plain plain = Plain::within_machine;
  /// Messages queued for one peer; a peer that lets more pile up is cut off. It must exceed the
  /// window of delivery.h, which is sent again at once.
  int high_water = 4096;
  /// Messages and bytes that wait to be sent by this end, and also those that wait for its
  /// callbacks.
  std::size_t queue = 10'000;
  std::size_t queue_bytes = std::size_t{256} << 20;
  /// A peer that is silent for longer than `silence` is gone, even if its host keeps the
  /// connection. The dialing end sends heartbeats at this interval, and says for how long it may be
  /// silent itself. ZeroMQ's threads do this, so a thread of ours that hangs is not noticed. Busy
  /// machines may be late, and the end of a process is noticed at once, so there is no hurry;
  /// heartbeats of hundreds of nodes add up.
  std::chrono::milliseconds ask_every{500};
  std::chrono::milliseconds silence{2000};
  /// The timeout from the start of a connection until both ends are authenticated.
  std::chrono::milliseconds handshake{5000};
  CrowdLimits crowd = CrowdLimits::of(descriptor_limit());
};

/// The reason why a peer is gone.
enum class Gone {
  closed,      // The other end was closed, died, or was silent for too long.
  too_slow,    // It did not take what was sent.
  struck_off,  // It sent too many invalid messages.
  cut,         // This end ended it.
};

/// A session with a peer, from its hello to its end. Ids are never reused.
using PeerId = std::uint64_t;

struct Peer {
  PeerId id = 0;
  std::string address;            // "10.0.0.7:40112", or "process 4711" for ipc.
  std::optional<uid_t> user;      // A local user, for a plain connection within this machine.
  std::string key;                // Its public key; empty for a plain connection.
  std::string host;               // Its name on the allow-list; empty for a plain connection.
  Roles roles;                    // The right to send; a plain peer has all rights of dialers.
  std::uint64_t incarnation = 0;  // As in its hello.
};

/// The callbacks of the head's end. Any may be empty.
struct ServerEvents {
  /// Reports a new session; its hello is the first message.
  std::function<void(const Peer&)> connected;
  /// Delivers a decoded message of a known type that the peer may send.
  std::function<void(const Peer&, Message)> message;
  /// Reports the end of a session, once. No message follows.
  std::function<void(const Peer&, Gone, const std::string& why)> gone;
  /// Reports a connection or message that was refused, at most once a minute per address.
  std::function<void(const std::string& address, const std::string& why)> refused;
};

struct ServerOptions {
  std::string endpoint;         // See endpoint.h.
  std::optional<KeyPair> keys;  // This end's keys. With keys, only peers on the list are admitted.
  AllowList allowed;
  LinkOptions link;
  StrikeRules strikes;
  Rate hellos_of_address = {.per_second = 10, .at_once = 1024};  // Clusters may share one.
  Rate hellos = {.per_second = 2000, .at_once = 8192};
  int backlog = 4096;  // Connections that wait for accept().
};

/// The head's end. It tells peers apart by its own numbers and identifies them by their keys, never
/// by the names they claim. Destroying it closes all connections without notice.
class ControlServer {
 public:
  ControlServer() = default;
  virtual ~ControlServer() = default;
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  /// Begins to call the callbacks. Events that happened before wait for it. Called once.
  virtual void start() = 0;

  /// Returns the endpoint with its actual port.
  virtual const std::string& endpoint() const = 0;

  /// Sends a message, from any thread; the order is kept. Fails if the message is invalid or too
  /// many wait; the connection goes on. A peer that is gone is no error: its end was reported, or
  /// will be.
  virtual Status send(PeerId peer, const Message& message) = 0;

  /// Ends a session, from any thread, after what was sent before.
  virtual Status cut(PeerId peer, std::string why) = 0;
  /// Counts a strike for a message that only the caller can judge as invalid. Any thread.
  virtual Status strike(PeerId peer, std::string why) = 0;

  /// Replaces the allow-list, from any thread. Ends the sessions of keys that were removed or have
  /// other roles or another host.
  virtual Status allow(AllowList allowed) = 0;

  virtual const Counters& counters() const = 0;
};

/// The callbacks of the dialing end. Any may be empty.
struct ClientEvents {
  /// Reports a connection: send a hello.
  std::function<void()> connected;
  std::function<void(Message)> message;
  /// Reports the end of the connection. Another one is being made.
  std::function<void(Gone, const std::string& why)> gone;
  /// Reports a failed connection attempt, or a dropped message.
  std::function<void(const std::string& why)> refused;
};

struct DialOptions {
  std::string endpoint;
  std::optional<KeyPair> keys;  // This end's keys.
  std::string head_key;         // The head's public key, if there are keys.
  LinkOptions link;
  BackoffRules backoff;
  std::uint64_t seed = 0;  // For the back-off; different in each process.
};

/// The end of a node, a daemon or a client. It reconnects whenever there is no connection.
class ControlClient {
 public:
  ControlClient() = default;
  virtual ~ControlClient() = default;
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  /// Begins to dial and to call the callbacks. Called once.
  virtual void start() = 0;

  /// Sends a message, from any thread, on the connection that ClientEvents::connected reported
  /// last. Fails if the message is invalid, that connection has ended, or too many wait; then the
  /// connection goes on.
  virtual Status send(const Message& message) = 0;

  virtual const Counters& counters() const = 0;
};

}  // namespace troupe::transport
