#include "actors/nodes/node_pool.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace troupe::actors {

namespace {

/// Five times the interval of readings.
constexpr auto gpu_patience = std::chrono::seconds(10);

}  // namespace

std::vector<GpuReading> NodeHere::gpus_at(Time now) const {
  return now - gpus_told < gpu_patience ? gpus : std::vector<GpuReading>();
}

kernels::Precision precision_named(std::string_view name) {
  const auto& all = kernels::precisions;
  const auto found = std::ranges::find(all, name, &kernels::PrecisionFacts::name);
  return found != all.end() ? found->precision : kernels::Precision::fp32;
}

bool has(const Inventory& inventory, kernels::Precision precision) {
  // Other precisions are not faster than fp32 anywhere, so no node reports them, or they are GPUs'
  // own: a node whose GPU lacks them says so when it prepares.
  if (kernels::facts_of(precision).makers != kernels::Makers::cores) return true;
  return precision_named(inventory.precision) >= precision;
}

std::string who_lacks(kernels::Precision precision, const std::vector<NodeHere>& nodes) {
  std::map<kernels::Precision, std::string> names;
  for (const auto& node : nodes) {
    if (has(node.inventory, precision)) continue;
    auto& those = names[precision_named(node.inventory.precision)];
    those += (those.empty() ? "" : ", ") + node.name;
  }
  std::string text;
  for (const auto& [best, those] : names)
    text += (text.empty() ? "" : "; ") + those + ": nothing better than " +
            std::string(to_string(best));
  return text;
}

NodeHere NodePool::add(std::uint64_t incarnation, std::string wanted, Inventory inventory,
                       std::string key) {
  const std::lock_guard lock(mutex_);
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::find(nodes_, name, &NodeHere::name) != nodes_.end();
  };
  if (wanted.empty()) wanted = inventory.host;
  std::string name = wanted;
  for (int number = 2; is_taken(name); ++number) name = wanted + "-" + std::to_string(number);
  nodes_.push_back({.incarnation = incarnation,
                    .name = name,
                    .inventory = std::move(inventory),
                    .key = std::move(key)});
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

void NodePool::set_gpus(std::uint64_t incarnation, std::vector<GpuReading> gpus, Time now) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(nodes_, incarnation, &NodeHere::incarnation);
  if (found == nodes_.end()) return;
  found->gpus = std::move(gpus);
  found->gpus_told = now;
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

std::vector<NodeHere> NodePool::usable(kernels::Precision least) const {
  const std::lock_guard lock(mutex_);
  return find_usable(least);
}

std::vector<NodeHere> NodePool::find_usable(kernels::Precision least) const {
  std::vector<NodeHere> found;
  std::ranges::copy_if(nodes_, std::back_inserter(found), [&](const NodeHere& node) {
    return !node.cordoned && !node.away && has(node.inventory, least);
  });
  return found;
}

void NodePool::wake() {
  // Take the lock, so that no caller misses the wake between its check and its wait.
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

std::vector<NodeHere> NodePool::wait_for(int fewest, kernels::Precision least,
                                         std::chrono::milliseconds patience,
                                         const std::function<bool()>& cancelled) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] {
    return cancelled() || static_cast<int>(find_usable(least).size()) >= fewest;
  });
  return find_usable(least);
}

}  // namespace troupe::actors
