#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "transport/control/control_socket.h"
#include "transport/control/endpoint.h"
#include "transport/wire/counters.h"

/// The knowledge of a dialing end of the control plane. It uses no socket and no clock, so a
/// simulated network can use it as well.
namespace troupe::transport {

/// Returns the endpoint to dial. Fails if dialing can never succeed.
Result<Endpoint> check_dialing(const DialOptions& options);

/// The reasons why a connection attempt failed.
namespace not_connected {
inline constexpr const char* nobody_listens = "nobody listens there";
inline constexpr const char* no_head_there =
    "something listens there, but it takes no orders; it may be a head's port for events, and the "
    "port for orders is 4700 unless the head was told otherwise";
inline constexpr const char* no_answer = "no answer in time";
inline constexpr const char* unknown_key =
    "the head does not know this key; add it to the head's allow list";
inline constexpr const char* no_head =
    "that address belongs to no head, or the head requires keys and this client has none";
inline constexpr const char* other_head_key =
    "the connection ended during the handshake; the head's key may differ from --head-key";
inline constexpr const char* other_user_maybe =
    "the head closed the connection at once; without keys a head serves only the user who started "
    "it, and this may be another user (`troupe keys new` makes keys for others)";
}  // namespace not_connected

/// The parts of a message that a client reads: three, the payload, and one more to detect an
/// excess.
constexpr std::size_t most_parts_of_message = 3 + 8 + 1;

/// Decides about each message that a client hears.
class HeadMessages {
 public:
  enum class What {
    good,     // Pass it on. It proves that the other end is a head.
    unknown,  // Send `message` to the head: the answer that this end does not know the type.
    bad,      // Drop it, and report `why` if it is not empty.
    too_bad,  // As `bad`; and end the connection, for the reason `end`.
  };
  struct Verdict {
    What what;
    Message message;
    std::string why;
    std::string end;
  };

  explicit HeadMessages(Counters& counters) : counters_(counters) {}

  /// Forgets the bad messages of the connection before.
  void begin() { bad_messages_ = 0; }
  /// `all_kept`: the message has no more than these parts.
  Verdict hear(const std::vector<std::string_view>& parts, bool all_kept);

 private:
  Verdict bad(Count count, const std::string& why);

  Counters& counters_;
  int bad_messages_ = 0;  // On this connection.
};

/// Counts the events that a listener has missed.
class MissedEvents {
 public:
  /// Events of a topic are counted only if it covers whole runs.
  explicit MissedEvents(const std::string& topic);

  /// Returns how many events of its run were missed between the one before and this one.
  std::uint64_t before(const Message& event);

 private:
  bool is_whole_;
  std::map<std::string, std::uint64_t> last_;  // The seq of each run's last event.
};

}  // namespace troupe::transport
