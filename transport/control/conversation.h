#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "core/result.h"
#include "transport/control/delivery.h"

namespace troupe::transport {

/// Returns 62 random bits, never 0, that identify one life of a process.
std::uint64_t new_incarnation();

/// One end of a conversation between two processes that outlives its connections. Every message
/// arrives once and in order; messages of a time without a connection go out on the next one. Any
/// thread may use it. It knows no socket.
///
/// Messages that need not arrive (Order::any, such as heartbeats) have no number, and are dropped
/// while there is no connection.
class Conversation {
 public:
  /// Sends a message to the other end. Must not wait. A message that it rejects is sent again
  /// later.
  using Send = std::function<Status(const Message&)>;

  /// `incarnation` identifies this life of this process.
  explicit Conversation(std::uint64_t incarnation) : here_(incarnation) {}

  /// Continues on a new connection. The other end has sent its incarnation, and the number up to
  /// which it has all of our messages. The listening end calls it first, then the dialing end.
  /// Fails if the other end is another process than before.
  Status resume(std::uint64_t incarnation, std::uint64_t ack, Send send);
  /// Notes that the connection has ended.
  void pause();

  /// Sends a message now or on the next connection. Fails if too many messages wait: the other end
  /// is as good as gone.
  Status say(Message message);
  /// Takes a message that has come and returns the messages to act on now. Fails if the other end
  /// contradicts itself.
  Result<std::vector<Message>> hear(Message message);

  std::uint64_t incarnation() const { return here_; }
  /// Returns the number up to which all messages have come, for the greeting.
  std::uint64_t ack() const;

 private:
  void acknowledge();

  const std::uint64_t here_;
  mutable std::mutex mutex_;
  std::uint64_t there_ = 0;
  SendWindow said_;
  std::optional<ReceiveWindow> heard_;
  std::uint64_t acknowledged_ = 0;  // The last ack that was sent.
  Send send_;                       // Null without a connection.
};

}  // namespace troupe::transport
