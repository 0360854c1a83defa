#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "core/result.h"
#include "transport/wire/wire.h"

/// Every message arrives, once and in order, although connections end: the sender numbers and keeps
/// what it says until the other side has it, and says it again on the next connection; the receiver
/// drops what it has seen. One of each at both ends, for as long as both processes live. Pure: they
/// know no socket and no clock.
///
/// Messages of types that message_types.h marks as unordered may overtake others; they arrive once,
/// too.
namespace troupe::transport {

struct DeliveryLimits {
  std::size_t messages = 1024;  // The window: the same number at both ends.
  std::size_t bytes = std::size_t{64} << 20;
};

/// What one end has said, until the other end has it.
class SendWindow {
 public:
  explicit SendWindow(const DeliveryLimits& limits = {}) : limits_(limits) {}

  /// Gives the message its number and keeps a copy. An error where too much was said that the other
  /// end has not acknowledged: it is as good as gone.
  Status stamp(Message& message);

  /// The other end has all up to `ack`. What is lower than before says nothing new; more than was
  /// ever said is an error of the other end's.
  Status acknowledge(std::uint64_t ack);

  /// All that the other end may not have, in order: what to say first on a new connection, after
  /// the hello.
  std::vector<Message> unacknowledged() const;

  std::uint64_t last() const { return last_; }
  std::size_t waiting() const { return kept_.size(); }

 private:
  struct Kept {
    Message message;
    std::size_t bytes = 0;
  };

  DeliveryLimits limits_;
  std::deque<Kept> kept_;  // The newest has the number last_.
  std::size_t bytes_ = 0;
  std::uint64_t last_ = 0;
};

/// What came from one life (incarnation) of the other end.
class ReceiveWindow {
 public:
  enum class What {
    passed,    // `now` has what to act on, in order.
    held,      // It waits for those before it, which will be sent again on the next connection.
    repeated,  // It was seen: acknowledge it again.
    beyond,    // There is no room for it: end the connection, so that it is sent again.
    stranger,  // It is of another life of the sender, or has no number.
  };
  struct Verdict {
    What what;
    std::vector<Message> now;
  };

  explicit ReceiveWindow(std::uint64_t incarnation, const DeliveryLimits& limits = {})
      : incarnation_(incarnation), limits_(limits) {}

  Verdict accept(Message message);

  /// All up to this number have come: the ack of what is sent back.
  std::uint64_t ack() const { return ack_; }
  std::size_t held() const { return held_.size(); }

 private:
  struct Held {
    Message message;
    std::size_t bytes = 0;
    bool passed = false;  // It has overtaken others; only its number is kept.
  };

  std::uint64_t incarnation_;
  DeliveryLimits limits_;
  std::map<std::uint64_t, Held> held_;  // By number: above ack_, and within the window.
  std::size_t bytes_ = 0;
  std::uint64_t ack_ = 0;
};

}  // namespace troupe::transport
