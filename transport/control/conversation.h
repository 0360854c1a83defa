#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "core/result.h"
#include "transport/control/delivery.h"

namespace troupe::transport {

/// For a process, or for what else lives once: 62 random bits, never 0, never used again.
std::uint64_t new_incarnation();

/// One end of a conversation between two processes that outlives its connections: what is said
/// while there is none is said on the next one; everything once, and in order. Any thread; it knows
/// no socket.
///
/// What need not arrive (Order::any: of a heartbeat only the newest counts) is not numbered, and is
/// dropped where there is no connection.
class Conversation {
 public:
  /// Takes a message to the other end. Must not wait. What it cannot take is said again later.
  using Send = std::function<Status(const Message&)>;

  /// Of this life of this process.
  explicit Conversation(std::uint64_t incarnation) : here_(incarnation) {}

  /// There is a connection, and the other end has said who it is and up to which of our messages it
  /// has all. One end calls it after the other has: who lets in first, then who was let in. An
  /// error where it is not the one to whom all was said before.
  Status resume(std::uint64_t incarnation, std::uint64_t ack, Send send);
  /// The connection has ended.
  void pause();

  /// An error where too much waits for the other end: it is as good as gone.
  Status say(Message message);
  /// What has come, to act on now. An error where the other end said what it cannot have said.
  Result<std::vector<Message>> hear(Message message);

  std::uint64_t incarnation() const { return here_; }
  /// All up to this number have come: for the greeting.
  std::uint64_t ack() const;

 private:
  void acknowledge();

  const std::uint64_t here_;
  mutable std::mutex mutex_;
  std::uint64_t there_ = 0;
  SendWindow said_;
  std::optional<ReceiveWindow> heard_;
  std::uint64_t acknowledged_ = 0;  // The ack that was sent last.
  Send send_;                       // Null where there is no connection.
};

}  // namespace troupe::transport
