#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "core/result.h"
#include "transport/wire/wire.h"

/// Delivers every message once and in order, although connections end. The sender numbers its
/// messages, keeps each until the receiver acknowledges it, and retransmits on the next connection.
/// The receiver drops duplicates. Each end has one window of each kind while both processes live.
/// The windows know no socket and no clock.
///
/// Types that message_types.h marks as unordered may overtake others. They arrive once, too.
namespace troupe::transport {

struct DeliveryLimits {
  std::size_t messages = 1024;  // The window; both ends use the same number.
  std::size_t bytes = std::size_t{64} << 20;
};

/// The messages that one end has sent and the other end has not acknowledged.
class SendWindow {
 public:
  explicit SendWindow(const DeliveryLimits& limits = {}) : limits_(limits) {}

  /// Numbers the message and keeps a copy. Fails if the window is full: the other end is as good as
  /// gone.
  Status stamp(Message& message);

  /// Drops the copies up to `ack`. A lower number than before changes nothing. A number that was
  /// never sent is an error of the other end.
  Status acknowledge(std::uint64_t ack);

  /// Returns all messages without an acknowledgement, in order. They go out first on a new
  /// connection, after the hello.
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

/// The messages from one life (incarnation) of the other end.
class ReceiveWindow {
 public:
  enum class What {
    passed,    // `now` has the messages to act on, in order.
    held,      // Earlier messages are missing; they come again on the next connection.
    repeated,  // A duplicate: acknowledge it again.
    beyond,    // No room: end the connection, so that it is sent again.
    stranger,  // The sender is another life, or the message has no number.
  };
  struct Verdict {
    What what;
    std::vector<Message> now;
  };

  explicit ReceiveWindow(std::uint64_t incarnation, const DeliveryLimits& limits = {})
      : incarnation_(incarnation), limits_(limits) {}

  Verdict accept(Message message);

  /// Returns the number up to which all messages have come: the next `ack`.
  std::uint64_t ack() const { return ack_; }
  std::size_t held() const { return held_.size(); }

 private:
  struct Held {
    Message message;
    std::size_t bytes = 0;
    bool passed = false;  // It has overtaken others; the window keeps only its number.
  };

  std::uint64_t incarnation_;
  DeliveryLimits limits_;
  std::map<std::uint64_t, Held> held_;  // Keyed by number: above ack_ and within the window.
  std::size_t bytes_ = 0;
  std::uint64_t ack_ = 0;
};

}  // namespace troupe::transport
