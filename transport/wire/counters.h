#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::transport {

/// The events that a socket counts. It drops nothing without counting it.
enum class Count {
  received,           // Messages that the socket passed on.
  sent,               // Messages that ZeroMQ took.
  malformed,          // Dropped: the bytes are no message.
  wrong_version,      // Refused: another major version of the wire.
  unknown_type,       // Refused: the table of messages has no such type.
  wrong_role,         // Refused: the key may not send this type.
  before_hello,       // Refused: the peer has opened no session.
  too_many_hellos,    // Dropped: the peer may say hello again later.
  quarantined,        // Refused: the hello of a peer that was struck off.
  unknown_key,        // Refused handshakes.
  failed_connection,  // Connections without a message: HTTP, TLS, wrong keys, no peer.
  too_slow,           // Peers that were cut off because they read too slowly.
  struck_off,         // Peers that were cut off for bad messages.
  other_user,         // Connections of other users of this machine, if there are no keys.
  crowded_out,        // Connections that were ended because there were too many.
  no_such_peer,       // Messages to a peer that was gone before they were sent.
};
constexpr std::size_t count_of_counts = 16;

/// Returns the name for a status page, such as "wrong_role".
std::string_view to_string(Count count);

/// Counters that one thread writes and any thread reads.
class Counters {
 public:
  void add(Count count) { at(count).fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t operator[](Count count) const {
    return counts_[static_cast<std::size_t>(count)].load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t>& at(Count count) { return counts_[static_cast<std::size_t>(count)]; }

  std::array<std::atomic<std::uint64_t>, count_of_counts> counts_{};
};

}  // namespace troupe::transport
