#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/result.h"
#include "transport/control/control_socket.h"

/// Events, from the head to everybody who listens. They go one way, and are not sent again: who
/// wants to know all of a run reads its file of events.
///
/// On the wire an event is a message as wire.h has it, with its topic in front:
///
///     [topic] [prelude] [envelope] [body]
///
/// The topic is "RUN/TYPE", and "/TYPE" for what is of no run, so that a script may subscribe to
/// "gpt-small/" or to "gpt-small/step":
///
///     socket = context.socket(zmq.SUB)
///     socket.connect(address)
///     socket.subscribe(b"gpt-small/")
///     topic, prelude, envelope, body = socket.recv_multipart()
///
/// The seq of an event counts the events of its run: who sees a gap has missed some, because it was
/// too slow or came late.
namespace troupe::transport {

std::string topic_of(const Message& event);

struct PublisherOptions {
  std::string endpoint;
  std::optional<KeyPair> keys;  // Ours. With them, only who is on the list may listen.
  AllowList allowed;
  LinkOptions link;  // high_water: events that wait for one listener.
  /// Of all topics that one connection subscribes to. ZeroMQ needs some fifty times as much for
  /// them; more are a mistake or an attack.
  std::size_t topic_bytes = 4096;
};

struct PublisherEvents {
  /// Somebody listens to what begins with this; told for each subscription.
  std::function<void(const std::string& topic)> subscribed;
  std::function<void(const std::string& address, const std::string& why)> refused;
};

/// The head's end (XPUB), with a thread of its own.
class Publisher {
 public:
  static Result<std::unique_ptr<Publisher>> bind(PublisherOptions options,
                                                 PublisherEvents events = {});
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  const std::string& endpoint() const;

  /// From any thread: who may listen from now on. Ends the connections of keys that are not on the
  /// list any more.
  void allow(AllowList allowed);

  /// From any thread; never waits. Numbers the event: its seq and ack do not count. An error where
  /// the message is none, or where more wait than may.
  Status publish(Message event);

  const Counters& counters() const;

 private:
  class Loop;
  explicit Publisher(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop_;
};

/// What a listener is told, one thing at a time, on a thread of its own.
struct SubscriberEvents {
  std::function<void()> connected;
  std::function<void(Message)> event;
  /// So many events of a run did not come. Told only to who listens to all of a run.
  std::function<void(const std::string& run, std::uint64_t count)> missed;
  std::function<void(const std::string& why)> gone;
  std::function<void(const std::string& why)> refused;
};

/// A listener's end (SUB). Dials again whenever there is no connection.
class Subscriber {
 public:
  /// `topic` is what the topics begin with: "" for all, "gpt-small/", "gpt-small/step".
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
