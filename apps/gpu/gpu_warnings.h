#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/nodes/node_pool.h"

namespace troupe::apps {

/// What a head says of GPUs that are in trouble: once of each in the life of its node, since one
/// that is at its limit is slowed down and let go again all the time. Any thread.
class GpuWarnings {
 public:
  /// "GPU 1 of node alpha is slowed by thermal slowdown"
  std::vector<std::string> news(const actors::NodeHere& node,
                                const std::vector<actors::GpuReading>& gpus);
  void forget(std::uint64_t incarnation);

 private:
  std::mutex mutex_;
  std::set<std::pair<std::uint64_t, int>> known_;  // By node and number.
};

}  // namespace troupe::apps
