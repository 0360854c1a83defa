#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "actors/caf_shim.h"
#include "actors/decide/events.h"
#include "actors/decide/orders.h"
#include "actors/messages.h"
#include "actors/play/players.h"

namespace troupe::actors {

/// Assembles the players of an attempt, in this process or on nodes, and asks the run's machine
/// for the supervisor. The machine's orders to the supervisor arrive as messages: HoldRounds,
/// PlayOn, Collect, ApplyChanges, SkipStep and End.
class PlayerHost {
 public:
  virtual ~PlayerHost() = default;
  /// Returns the last attempt of earlier runs of this name, whose number is not used again.
  virtual int last_attempt() const { return 0; }
  /// Must not block. A player that cannot be made ends with the reason. If no further attempt is to
  /// begin, the supervisor receives End.
  virtual Team begin(const caf_shim::Spawner& spawner, const AttemptContext& attempt_context,
                     int attempt, Origin origin) = 0;
  /// Tells the run's machine, which knows the attempt.
  virtual void tell(decide::Event event) = 0;
  /// Tells the machine of the failure that ends the attempt: of a player, or of none that is known.
  virtual void failed(std::optional<PlayerId> player, const std::string& why) = 0;
  /// Refuses an invalid report of a player. On a node, that counts against the node.
  virtual void refuse(PlayerId player, const std::string& why) = 0;
  /// Returns the name of the player's node in the newest attempt, if players are on nodes.
  virtual std::optional<std::string> node_of(PlayerId) const { return {}; }
  /// Called at the end of the run: its data can be forgotten, unless it is to be resumed.
  virtual void over(Outcome::How) {}
};

/// Returns how a run has ended after this order.
constexpr Outcome::How how_of(decide::End::How how) {
  switch (how) {
    case decide::End::How::done:
      return Outcome::How::done;
    case decide::End::How::stopped:
      return Outcome::How::stopped;
    case decide::End::How::failed:
      return Outcome::How::failed;
  }
  return Outcome::How::failed;
}

/// Returns the event as one of this attempt, by the machine's number.
inline decide::Event of_attempt(std::uint64_t attempt, decide::Event event) {
  std::visit(
      [attempt](auto& one) {
        if constexpr (requires { one.attempt; }) one.attempt = attempt;
      },
      event);
  return event;
}

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::decide::HoldRounds)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::decide::PlayOn)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::decide::Collect)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::decide::ApplyChanges)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::decide::SkipStep)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::decide::End)
