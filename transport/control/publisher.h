#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/result.h"
#include "transport/control/control_socket.h"

/// Publishes the head's events to all subscribers. A lost event is not sent again; the file of
/// events of a run has all of them.
///
/// On the wire an event is a message (wire.h) with its topic in front:
///
///     [topic] [prelude] [envelope] [body]
///
/// The topic is "RUN/TYPE", or "/TYPE" for an event without a run. A script may subscribe to
/// "gpt-small/" or to "gpt-small/step":
///
///     socket = context.socket(zmq.SUB)
///     socket.connect(address)
///     socket.subscribe(b"gpt-small/")
///     topic, prelude, envelope, body = socket.recv_multipart()
///
/// The seq of an event counts the events of its run. A subscriber that sees a gap was too slow or
/// came late.
namespace troupe::transport {

std::string topic_of(const Message& event);

struct PublisherOptions {
  std::string endpoint;
  std::optional<KeyPair> keys;  // Our keys. With keys, only peers on the list may listen.
  AllowList allowed;
  LinkOptions link;  // high_water: the most events that wait for one subscriber.
  /// The most bytes of all topics that one connection subscribes to. ZeroMQ needs about fifty times
  /// as much memory for them. More topics are a mistake or an attack.
  std::size_t topic_bytes = 4096;
};

struct PublisherEvents {
  /// A peer has subscribed to the topics that begin with this text.
  std::function<void(const std::string& topic)> subscribed;
  std::function<void(const std::string& address, const std::string& why)> refused;
};

/// The head's end (XPUB), with its own thread.
class Publisher {
 public:
  static Result<std::unique_ptr<Publisher>> bind(PublisherOptions options,
                                                 PublisherEvents events = {});
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  const std::string& endpoint() const;

  /// Replaces the list of keys that may listen. Ends the connections of keys that the list has no
  /// longer. Any thread may call it.
  void allow(AllowList allowed);

  /// Numbers and publishes an event; the caller's seq and ack are ignored. Never waits. Fails if
  /// the message cannot be encoded or the queue is full. Any thread may call it.
  Status publish(Message event);

  const Counters& counters() const;

 private:
  class Loop;
  explicit Publisher(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop_;
};

/// Callbacks of a subscriber. Its thread calls them one at a time.
struct SubscriberEvents {
  std::function<void()> connected;
  std::function<void(Message)> event;
  /// `count` events of a run were lost. Called only for a subscription to all events of a run.
  std::function<void(const std::string& run, std::uint64_t count)> missed;
  std::function<void(const std::string& why)> gone;
  std::function<void(const std::string& why)> refused;
};

/// A subscriber's end (SUB). It dials again whenever the connection ends.
class Subscriber {
 public:
  /// Subscribes to the topics that begin with `topic`: "" for all, "gpt-small/", "gpt-small/step".
  static Result<std::unique_ptr<Subscriber>> dial(DialOptions options, std::string topic,
                                                  SubscriberEvents events);
  ~Subscriber();
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  const Counters& counters() const;

 private:
  class Loop;
  explicit Subscriber(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop_;
};

}  // namespace troupe::transport
