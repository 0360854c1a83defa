#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/env.h"
#include "core/result.h"
#include "transport/channels/channel.h"
#include "transport/channels/door.h"
#include "transport/control/control_socket.h"
#include "transport/control/publisher.h"

namespace troupe::transport {

/// The place at which open_door() opens a door for processes of the same machine, which then share
/// memory. connect() wants it before the address of such a door.
inline const std::string shared_memory = "shm:";

/// The network as one process sees it. It makes all sockets, doors and channels of the process. The
/// main function makes the real one (transport/real_network.h) and hands it down, as it does with
/// the environment (core/env.h). A simulator gives each simulated process another one.
///
/// Any thread may call the functions. The network outlives everything that it made.
///
/// Callbacks of sockets are tasks of the loop that the caller names:
/// - They run one at a time, in the order of the events. The loop must not have a bound.
/// - Callbacks of a server or client begin after its start(), so the caller can first store it.
/// - A callback must not destroy its socket. When the destructor of a socket has returned, none of
///   its callbacks runs any more. The destructor waits only for a callback that runs meanwhile on
///   another thread: a task of the loop may destroy a socket without a wait.
/// - After the end of the loop no callback runs. The loop must outlive the socket.
/// - If callbacks are slow, the socket reads no more messages until they have caught up, so the
///   peers wait (LinkOptions::queue, LinkOptions::queue_bytes).
///
/// Callbacks of channels (Listener, Sending::on_end) run on a thread of the network instead,
/// because a thread switch for each tensor would cost too much. They must not block.
class Network {
 public:
  Network() = default;
  virtual ~Network() = default;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Binds the head's end of the control plane. Fails if the address is invalid or in use, or if
  /// plain messages would leave the machine without consent.
  virtual Result<std::unique_ptr<ControlServer>> listen(ServerOptions options, ServerEvents events,
                                                        Loop& loop) = 0;
  /// Makes the other end. Returns before there is a connection: it dials, again and again, from
  /// start() on. Fails only if dialing can never succeed.
  virtual Result<std::unique_ptr<ControlClient>> dial(DialOptions options, ClientEvents events,
                                                      Loop& loop) = 0;

  /// Binds the end that publishes events.
  virtual Result<std::unique_ptr<Publisher>> open_publisher(PublisherOptions options) = 0;
  /// Makes a listener's end, which dials as dial() does. `topic` is a prefix of topics: "" for all,
  /// "gpt-small/", "gpt-small/step". Its callbacks may begin before this returns.
  virtual Result<std::unique_ptr<Subscriber>> subscribe(DialOptions options, std::string topic,
                                                        SubscriberEvents events, Loop& loop) = 0;

  /// Opens a door for channels. `at` is `shared_memory`, or a numeric TCP address like
  /// "10.0.0.7:0" or "[fe80::1]:0", where port 0 takes a free port. Never waits.
  virtual Result<std::unique_ptr<Door>> open_door(const std::string& at,
                                                  const DoorOrder& order) = 0;
  /// Connects to a door. `to` is the address of a TCP door, or `shared_memory` and the address of a
  /// door for shared memory. Returns at once. Calls `then` once, as a task of the loop: with the
  /// sender when the door has admitted it, or with an error if the door refuses it, or is silent
  /// for longer than Sending::patience. Several connections of one loop may be made one after
  /// another.
  ///
  /// The caller cannot take it back: `then` must cope if nobody wants the sender any more, and may
  /// drop it. `Sending::on_end` may be called before `then`.
  virtual void connect(const std::string& to, Sending sending, Loop& loop,
                       std::function<void(Result<std::unique_ptr<Sender>>)> then) = 0;

  /// Returns an id of the machine. Processes of one machine can share memory, and keep no copies
  /// for each other. It differs even for machines that were booted from one image.
  virtual std::string machine_id() = 0;
};

}  // namespace troupe::transport
