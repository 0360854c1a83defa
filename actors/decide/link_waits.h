#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/decide/stragglers.h"

namespace troupe::actors {

/// How long devices of node `to` had nothing to do until a tensor of node `from` came.
struct LinkWait {
  std::string from, to;
  std::chrono::nanoseconds time{};

  friend bool operator==(const LinkWait&, const LinkWait&) = default;
};

/// Measures how long nodes wait for each other in the rounds of an attempt. A wait is measured by
/// the clock of the device that waits: from the end of its action before. It is the time that the
/// link costs, and that which the sender still computes.
class LinkWaits {
 public:
  /// Forgets everything. `nodes`: the node of each device, by replica, then device.
  void attempt_begins(std::vector<std::string> nodes, int replicas);
  /// Something else than training happened after the last round: the time until the next one is no
  /// wait.
  void interrupted();
  /// Returns the waits of a mean step of the round, sorted, for pairs of nodes that waited at all.
  /// Every device must be in the round.
  std::vector<LinkWait> add(const TimedRound& round);

 private:
  using Stage = std::pair<std::size_t, int>;  // The replica, and the number.

  std::vector<std::string> nodes_;
  std::size_t in_replica_ = 1;
  std::vector<std::optional<std::chrono::nanoseconds>> free_;  // When its last action ended.
};

}  // namespace troupe::actors
