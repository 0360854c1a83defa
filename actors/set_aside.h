#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "actors/node_pool.h"
#include "transport/strikes.h"

namespace troupe::actors {

/// Nodes that a run does without for a while, since something failed on them: for a minute at
/// first, each time for twice as long, for an hour at most. Who has failed is better than nobody:
/// where the others are too few, none is set aside. By name, as a process that is started again is
/// no better for it. Any thread.
class SetAside {
 public:
  using Clock = std::chrono::steady_clock;

  /// For how long.
  Clock::duration add(const std::string& node, Clock::time_point now);
  /// Of the nodes that could be used those that are to be.
  std::vector<NodeHere> choose(std::vector<NodeHere> nodes, int fewest,
                               Clock::time_point now) const;

 private:
  mutable std::mutex mutex_;
  transport::Strikes strikes_{{.most = 1,
                               .within = std::chrono::minutes(1),
                               .quarantine = std::chrono::minutes(1),
                               .longest = std::chrono::hours(1)}};
};

}  // namespace troupe::actors
