#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::transport {

/// What a socket counts. Nothing is dropped without being counted.
enum class Count {
  received,           // Messages that were passed on.
  sent,               // Messages that were handed to ZeroMQ.
  malformed,          // Dropped: not a message.
  wrong_version,      // Dropped: of another major version.
  unknown_type,       // Refused, or dropped: of a type that only newer ones know.
  wrong_role,         // Dropped: of a type that this key may not send.
  before_hello,       // Dropped: no session was opened.
  too_many_hellos,    // Dropped: the peer may try again later.
  quarantined,        // Dropped: the hello of one who was struck off.
  unknown_key,        // Handshakes that were refused.
  failed_connection,  // Connections on which nothing was said: HTTP, TLS, wrong keys, nobody there.
  too_slow,           // Peers that were cut off because they did not take what was sent.
  struck_off,         // Peers that were cut off for what they sent.
  other_user,         // Connections of other users of this machine, where there are no keys.
  crowded_out,        // Connections that were ended because there were too many.
  no_such_peer,       // Messages to a peer that was gone when their turn came.
};
constexpr std::size_t count_of_counts = 16;

/// "wrong_role": what a status page calls it.
std::string_view to_string(Count count);

/// Written by one thread, read by any.
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
