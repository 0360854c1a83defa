#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "core/result.h"
#include "transport/wire/wire.h"

/// Delivers every message exactly once and in order, across connections. The sender numbers
/// messages and keeps them until they are acknowledged, and sends them again on the next
/// connection; the receiver drops duplicates. A connection keeps the order, and the sender leaves
/// no message out, so the receiver refuses one that comes too early. Both processes have one of
/// each class for their lifetime. The code uses no socket or clock.
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

  /// Returns the oldest unacknowledged message with a number above `seq`, or null if there is none.
  /// It is valid until the window changes.
  Message* next_after(std::uint64_t seq);

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
    next,      // Handle it now.
    repeated,  // A duplicate: acknowledge it again.
    early,     // One before it has not come, which a correct sender never does.
    stranger,  // It is from another life of the sender, or has no number.
  };

  explicit ReceiveWindow(std::uint64_t incarnation) : incarnation_(incarnation) {}

  /// Counts a message, and returns what it is.
  What accept(const Message& message);

  /// Returns the number up to which all messages have arrived.
  std::uint64_t ack() const { return ack_; }

 private:
  std::uint64_t incarnation_;
  std::uint64_t ack_ = 0;
};

}  // namespace troupe::transport
