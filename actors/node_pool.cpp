#include "actors/node_pool.h"

#include <algorithm>
#include <utility>

namespace troupe::actors {

NodeHere NodePool::add(std::uint64_t peer, std::string wanted, Inventory inventory) {
  const std::lock_guard lock(mutex_);
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::find(nodes_, name, &NodeHere::name) != nodes_.end();
  };
  if (wanted.empty()) wanted = inventory.host;
  std::string name = wanted;
  for (int number = 2; is_taken(name); ++number) name = wanted + "-" + std::to_string(number);
  nodes_.push_back({peer, name, std::move(inventory), false});
  changed_.notify_all();
  return nodes_.back();
}

std::string NodePool::remove(std::uint64_t peer) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(nodes_, peer, &NodeHere::peer);
  if (found == nodes_.end()) return {};
  std::string name = std::move(found->name);
  nodes_.erase(found);
  changed_.notify_all();
  return name;
}

bool NodePool::cordon(const std::string& name, bool cordoned) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(nodes_, name, &NodeHere::name);
  if (found == nodes_.end()) return false;
  found->cordoned = cordoned;
  changed_.notify_all();
  return true;
}

std::vector<NodeHere> NodePool::all() const {
  const std::lock_guard lock(mutex_);
  return nodes_;
}

std::vector<NodeHere> NodePool::usable() const {
  std::vector<NodeHere> found;
  std::ranges::copy_if(nodes_, std::back_inserter(found),
                       [](const NodeHere& node) { return !node.cordoned; });
  return found;
}

std::vector<NodeHere> NodePool::wait_for(int fewest, std::chrono::milliseconds patience,
                                         const std::function<bool()>& cancelled) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience,
                    [&] { return cancelled() || static_cast<int>(usable().size()) >= fewest; });
  return usable();
}

}  // namespace troupe::actors
