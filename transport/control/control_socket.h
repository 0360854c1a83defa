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

/// The two ends of the control plane: the head listens, all others dial it. Each end has a thread
/// of its own that does all of the work; anyone may send from any thread.
///
/// A connection that ends may lose what was sent on it last, and neither end learns what:
/// delivery.h is who numbers messages and sends them again.
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

/// A message is plain, or under CURVE where there are keys.
struct LinkOptions {
  /// Plain messages leave this machine only where that is asked for: anybody could read and say
  /// them.
  enum class Plain { within_machine, anywhere };

  Plain plain = Plain::within_machine;
  /// Messages that wait for one peer. One who lets more come together is cut off. More than the
  /// window of delivery.h, which is sent again at once.
  int high_water = 4096;
  /// Messages, and their bytes, that wait for the thread of this end.
  std::size_t queue = 10'000;
  std::size_t queue_bytes = std::size_t{256} << 20;
  /// One who is silent for longer is gone, even if its computer still keeps the connection. Who
  /// dials asks so often, and says with it how long it may be silent itself; ZeroMQ's threads ask
  /// and answer, so a thread of ours that hangs is not noticed. A machine that is busy with other
  /// things may be late, and the end of a process is heard at once without being asked for: so
  /// there is time. Not oftener: hundreds of nodes tell by themselves that they live, and asking
  /// adds up.
  std::chrono::milliseconds ask_every{500};
  std::chrono::milliseconds silence{2000};
  /// From the connection's start until both ends have said who they are.
  std::chrono::milliseconds handshake{5000};
  CrowdLimits crowd = CrowdLimits::of(descriptor_limit());
};

/// Why a peer is gone.
enum class Gone {
  closed,      // Its end was closed, it ended, or it was silent for too long.
  too_slow,    // It did not take what was sent.
  struck_off,  // It said too much that nobody should say.
  cut,         // This end wanted it.
};

/// A connection that somebody made to us, from its hello to its end. Never used again for another.
using PeerId = std::uint64_t;

struct Peer {
  PeerId id = 0;
  std::string address;        // "10.0.0.7:40112", or "process 4711" for ipc.
  std::optional<uid_t> user;  // Of this machine, for a plain connection within it.
  std::string key;            // Its public key; empty for a plain connection.
  std::string host;           // By the allow-list; empty for a plain connection.
  Roles roles;  // What it may send; everything that dials may, for a plain connection.
  std::uint64_t incarnation = 0;  // By its hello.
};

/// What the head's end tells, one at a time, on its own thread. A function that is not set is not
/// called. They must return soon, and must not destroy the socket.
struct ServerEvents {
  /// A peer has opened a session; its hello is the first message.
  std::function<void(const Peer&)> connected;
  /// Decoded, of a known type, and of one that the peer may send.
  std::function<void(const Peer&, Message)> message;
  /// Told once for each that connected. Nothing comes from it afterwards.
  std::function<void(const Peer&, Gone, const std::string& why)> gone;
  /// Something was not let in or was dropped. At most once a minute for each address.
  std::function<void(const std::string& address, const std::string& why)> refused;
};

struct ServerOptions {
  std::string endpoint;         // As endpoint.h has it.
  std::optional<KeyPair> keys;  // Ours. With them, only who is on the list gets in.
  AllowList allowed;
  LinkOptions link;
  StrikeRules strikes;
  Rate hellos_of_address = {.per_second = 10, .at_once = 1024};  // A cluster may come from one.
  Rate hellos = {.per_second = 2000, .at_once = 2000};
  int backlog = 4096;  // Connections that wait to be accepted.
};

/// The head's end (ROUTER). Peers are told apart by numbers that this end makes up, and known by
/// their keys, never by what they call themselves.
class ControlServer {
 public:
  static Result<std::unique_ptr<ControlServer>> bind(ServerOptions options, ServerEvents events);
  /// Closes all connections, without a word.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  /// With the port that was taken where 0 was asked for.
  const std::string& endpoint() const;

  /// From any thread; what is sent first goes first. An error where the message is none, or where
  /// more wait than may. A peer that is gone by then is no error: its end was told or will be.
  Status send(PeerId peer, const Message& message);

  /// From any thread, in turn with what is sent: ends a connection.
  Status cut(PeerId peer, std::string why);
  /// Likewise: the peer said what it should not have said, by what only the caller knows.
  Status strike(PeerId peer, std::string why);

  /// Likewise: who may dial from now on. Ends the sessions of keys that are not on the list any
  /// more, or stand there with other roles or another host.
  Status allow(AllowList allowed);

  const Counters& counters() const;

 private:
  class Loop;
  explicit ControlServer(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop_;
};

/// What the dialing end tells, under the same rules.
struct ClientEvents {
  /// There is a connection; say hello.
  std::function<void()> connected;
  std::function<void(Message)> message;
  /// The connection has ended; another one is being made.
  std::function<void(Gone, const std::string& why)> gone;
  /// A try to connect has failed, or what came was dropped.
  std::function<void(const std::string& why)> refused;
};

struct DialOptions {
  std::string endpoint;
  std::optional<KeyPair> keys;  // Ours.
  std::string head_key;         // The head's public key, where there are keys.
  LinkOptions link;
  BackoffRules backoff;
  std::uint64_t seed = 0;  // Of the back-off: different for each process.
};

/// The end of a node, a daemon or a client (DEALER). Dials again, after a while, whenever there is
/// no connection.
class ControlClient {
 public:
  static Result<std::unique_ptr<ControlClient>> dial(DialOptions options, ClientEvents events);
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  /// From any thread. An error where the message is none, where there is no connection, or where
  /// more wait than may.
  Status send(const Message& message);

  const Counters& counters() const;

 private:
  class Loop;
  explicit ControlClient(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop_;
};

}  // namespace troupe::transport
