#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "core/result.h"
#include "transport/wire/wire.h"

/// Delivers every message exactly once and in order, across connections. The sender numbers
/// messages and keeps them until they are acknowledged, and sends them again on the next
/// connection; the receiver drops duplicates. Both processes have one of each class for their
/// lifetime. The code uses no socket or clock.
///
/// Messages whose types message_types.h marks as unordered may overtake others; they also arrive
/// once.
namespace troupe::transport {

/// Returns about how many bytes of memory a message needs.
std::size_t bytes_of(const Message& message);

struct DeliveryLimits {
  std::size_t messages = 1024;  // The window; both ends use the same number.
  std::size_t bytes = std::size_t{64} << 20;
};

/// The messages that were sent and are not acknowledged.
class SendWindow {
 public:
  explicit SendWindow(const DeliveryLimits& limits = {}) : limits_(limits) {}

  /// Numbers the message and keeps a copy. Fails if too much is unacknowledged: then the other end
  /// is as good as gone.
  Status stamp(Message& message);

  /// Drops all messages up to `ack`. A lower number than before is ignored; a higher one than was
  /// ever sent is an error of the other end.
  Status acknowledge(std::uint64_t ack);

  /// Returns all unacknowledged messages in order: send them first on a new connection, after the
  /// hello.
  std::vector<Message> unacknowledged() const;

  std::uint64_t last() const { return last_; }
  std::size_t waiting() const { return kept_.size(); }

 private:
  struct Kept {
    Message message;
    std::size_t bytes = 0;
  };

  DeliveryLimits limits_;
  std::deque<Kept> kept_;  // The newest message has the number last_.
  std::size_t bytes_ = 0;
  std::uint64_t last_ = 0;
};

/// The messages that came from one life (incarnation) of the other end.
class ReceiveWindow {
 public:
  enum class What {
    passed,    // `now` has the messages to handle, in order.
    held,      // It waits for earlier messages, which the next connection brings.
    repeated,  // A duplicate: acknowledge it again.
    beyond,    // There is no room for it: end the connection, so that it is sent again.
    stranger,  // It is from another life of the sender, or has no number.
  };
  struct Verdict {
    What what;
    std::vector<Message> now;
  };

  explicit ReceiveWindow(std::uint64_t incarnation, const DeliveryLimits& limits = {})
      : incarnation_(incarnation), limits_(limits) {}

  Verdict accept(Message message);

  /// Returns the number up to which all messages have arrived.
  std::uint64_t ack() const { return ack_; }
  std::size_t held() const { return held_.size(); }

 private:
  struct Held {
    Message message;
    std::size_t bytes = 0;
    bool passed = false;  // It overtook others and was handled; only its number is kept.
  };

  std::uint64_t incarnation_;
  DeliveryLimits limits_;
  std::map<std::uint64_t, Held> held_;  // Keyed by number: above ack_ and within the window.
  std::size_t bytes_ = 0;
  std::uint64_t ack_ = 0;
};

}  // namespace troupe::transport
