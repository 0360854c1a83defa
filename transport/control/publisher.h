#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/result.h"
#include "transport/control/control_socket.h"
#include "transport/wire/event_frame.h"

/// Publishes events from the head to all listeners. Events are not sent again: read a run's event
/// file to see all of them.
///
/// On the wire an event is one part (event_frame.h). Its topic is "RUN/TYPE", or "/TYPE" without a
/// run, so that a script can subscribe to "gpt-small/" or to "gpt-small/step":
///
///     socket = context.socket(zmq.SUB)
///     socket.connect(address)
///     socket.subscribe(b"gpt-small/")
///     topic, _, message = socket.recv().partition(b"\0")
///
/// An event's seq counts the events of its run. A gap means that a listener missed events, because
/// it was too slow or came late.
namespace troupe::transport {

struct PublisherOptions {
  std::string endpoint;
  std::optional<KeyPair> keys;  // This end's keys. With keys, only peers on the list may listen.
  AllowList allowed;
  LinkOptions link;  // `high_water` limits the events queued for one listener.
  /// The bytes of all topics of one connection. ZeroMQ needs about fifty times as much memory for
  /// them, so more is a mistake or an attack.
  std::size_t topic_bytes = 4096;
};

/// Numbers the events of each run. For those who make a publisher.
class RunNumbers {
 public:
  std::uint64_t next(const std::string& run);

 private:
  struct Entry {
    std::uint64_t seq = 0;
    std::uint64_t used = 0;
  };

  std::uint64_t clock_ = 0;
  std::map<std::string, Entry> last_;
};

/// The head's end. Destroying it closes all connections.
class Publisher {
 public:
  Publisher() = default;
  virtual ~Publisher() = default;
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// Returns the endpoint with its actual port.
  virtual const std::string& endpoint() const = 0;

  /// Replaces the allow-list, from any thread. Ends the connections of keys that were removed.
  virtual void allow(AllowList allowed) = 0;

  /// Publishes an event, from any thread; never blocks. Sets its seq and ack. Fails if the event is
  /// invalid or too many wait.
  virtual Status publish(Message event) = 0;

  virtual const Counters& counters() const = 0;
};

/// The callbacks of a listener. Any may be empty.
struct SubscriberEvents {
  std::function<void()> connected;
  std::function<void(Message)> event;
  /// Reports that `count` events of a run were missed; only for listeners to whole runs.
  std::function<void(const std::string& run, std::uint64_t count)> missed;
  std::function<void(const std::string& why)> gone;
  std::function<void(const std::string& why)> refused;
};

/// A listener's end. It reconnects whenever there is no connection.
class Subscriber {
 public:
  Subscriber() = default;
  virtual ~Subscriber() = default;
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  virtual const Counters& counters() const = 0;
};

}  // namespace troupe::transport
