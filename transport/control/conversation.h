#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "core/env.h"
#include "core/result.h"
#include "transport/control/delivery.h"

namespace troupe::transport {

/// Returns a new id for a process's life: 62 random bits, never 0, never reused.
std::uint64_t new_incarnation(Env& env);

/// One end of a conversation between two processes that survives connections: messages sent without
/// a connection are delivered on the next one, exactly once and in order. Thread-safe; it knows no
/// socket.
///
/// Messages that need not arrive (Order::any; only the newest heartbeat counts) are not numbered,
/// and are dropped without a connection.
class Conversation {
 public:
  /// Sends a message to the other end. Must not block. What it cannot send now is sent later,
  /// before all that follows.
  using Send = std::function<Status(const Message&)>;

  /// `incarnation` is the id of this process's life.
  explicit Conversation(std::uint64_t incarnation) : here_(incarnation) {}

  /// Continues on a new connection, after the other end has said who it is and which messages it
  /// has. The accepting end calls it first, then the dialing end. An end must have sent its own
  /// greeting before, because this sends messages at once, and the other end drops those that come
  /// before the greeting. Fails if the other end is another process than before.
  Status resume(std::uint64_t incarnation, std::uint64_t ack, Send send);
  /// Called when the connection has ended.
  void pause();

  /// Sends a message, now or later. Fails if too much waits: the other end is as good as gone.
  Status say(Message message);
  /// Returns the message if it is to be handled. Fails if the other end sent something impossible.
  Result<std::optional<Message>> hear(Message message);

  std::uint64_t incarnation() const { return here_; }
  /// Returns the number up to which all messages have arrived; for the greeting.
  std::uint64_t ack() const;

 private:
  void acknowledge();
  void send_kept();

  const std::uint64_t here_;
  mutable std::mutex mutex_;
  std::uint64_t there_ = 0;
  SendWindow said_;
  std::optional<ReceiveWindow> heard_;
  std::uint64_t acknowledged_ = 0;  // The last ack that was sent.
  std::uint64_t sent_ = 0;          // The last number that this connection has taken.
  Send send_;                       // Null without a connection.
};

}  // namespace troupe::transport
