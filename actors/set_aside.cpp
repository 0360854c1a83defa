#include "actors/set_aside.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace troupe::actors {

SetAside::Clock::duration SetAside::add(const std::string& node, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  strikes_.strike(node, now);
  return strikes_.quarantine_left(node, now).value_or(Clock::duration::zero());
}

std::vector<NodeHere> SetAside::choose(std::vector<NodeHere> nodes, int fewest,
                                       Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  const auto is_in = [&](const NodeHere& node) {
    return !strikes_.quarantine_left(node.name, now);
  };
  if (std::ranges::count_if(nodes, is_in) < std::max(1, fewest)) return nodes;
  std::erase_if(nodes, std::not_fn(is_in));
  return nodes;
}

}  // namespace troupe::actors
