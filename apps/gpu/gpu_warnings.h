#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/nodes/node_pool.h"

namespace troupe::apps {

/// The warnings about GPUs in trouble. Each is given once in the life of a node, since a GPU at its
/// limit is slowed down and released all the time. Any thread may call it.
class GpuWarnings {
 public:
  /// Returns new warnings, such as "GPU 1 of node alpha is slowed by thermal slowdown".
  std::vector<std::string> news(const actors::NodeHere& node,
                                const std::vector<actors::GpuReading>& gpus);
  void forget(std::uint64_t incarnation);

 private:
  std::mutex mutex_;
  // The warnings given, by node incarnation and GPU number.
  std::set<std::pair<std::uint64_t, int>> known_;
};

}  // namespace troupe::apps
