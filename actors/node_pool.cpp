#include "actors/node_pool.h"

#include <algorithm>
#include <utility>

namespace troupe::actors {

NodeHere NodePool::add(std::uint64_t incarnation, std::string wanted, Inventory inventory) {
  const std::lock_guard lock(mutex_);
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::find(nodes_, name, &NodeHere::name) != nodes_.end();
  };
  if (wanted.empty()) wanted = inventory.host;
  std::string name = wanted;
  for (int number = 2; is_taken(name); ++number) name = wanted + "-" + std::to_string(number);
  nodes_.push_back({incarnation, name, std::move(inventory)});
  changed_.notify_all();
  return nodes_.back();
}

std::optional<NodeHere> NodePool::remove(std::uint64_t incarnation) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(nodes_, incarnation, &NodeHere::incarnation);
  if (found == nodes_.end()) return {};
  NodeHere gone = std::move(*found);
  nodes_.erase(found);
  changed_.notify_all();
  return gone;
}

bool NodePool::cordon(const std::string& name, bool cordoned) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(nodes_, name, &NodeHere::name);
  if (found == nodes_.end()) return false;
  found->cordoned = cordoned;
  changed_.notify_all();
  return true;
}

void NodePool::set_away(std::uint64_t incarnation, bool away) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(nodes_, incarnation, &NodeHere::incarnation);
  if (found == nodes_.end() || found->away == away) return;
  found->away = away;
  changed_.notify_all();
}

std::optional<NodeHere> NodePool::find(std::uint64_t incarnation) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(nodes_, incarnation, &NodeHere::incarnation);
  return found == nodes_.end() ? std::nullopt : std::optional(*found);
}

std::vector<NodeHere> NodePool::all() const {
  const std::lock_guard lock(mutex_);
  return nodes_;
}

std::vector<NodeHere> NodePool::usable() const {
  const std::lock_guard lock(mutex_);
  return find_usable();
}

std::vector<NodeHere> NodePool::find_usable() const {
  std::vector<NodeHere> found;
  std::ranges::copy_if(nodes_, std::back_inserter(found),
                       [](const NodeHere& node) { return !node.cordoned && !node.away; });
  return found;
}

std::vector<NodeHere> NodePool::wait_for(int fewest, std::chrono::milliseconds patience,
                                         const std::function<bool()>& cancelled) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] {
    return cancelled() || static_cast<int>(find_usable().size()) >= fewest;
  });
  return find_usable();
}

}  // namespace troupe::actors
