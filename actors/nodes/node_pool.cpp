#include "actors/nodes/node_pool.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

namespace troupe::actors {

namespace {

/// Five times the interval of readings.
constexpr auto reading_patience = std::chrono::seconds(10);

/// Returns whether a node may get new work in this precision.
bool is_usable(const NodeHere& node, kernels::Precision least) {
  return !node.cordoned && !node.away && has(node.inventory, least);
}

double core_rate(const NodeHere& node, double Speed::*rate) {
  const auto& speed = node.inventory.speed;
  return speed ? (*speed).*rate / std::max(1, node.inventory.cores) : 0;
}

double fastest_core(const std::vector<NodeHere>& nodes, double Speed::*rate) {
  double fastest = 0;
  for (const auto& node : nodes) fastest = std::max(fastest, core_rate(node, rate));
  return fastest;
}

}  // namespace

std::vector<GpuReading> NodeHere::gpus_at(Time now) const {
  return now - gpus_told < reading_patience ? gpus : std::vector<GpuReading>();
}

MachineLoad NodeHere::load_at(Time now) const {
  return now - load_told < reading_patience ? load : MachineLoad();
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

std::vector<double> core_levels(const std::vector<NodeHere>& nodes, double Speed::*rate) {
  constexpr double level = 1.5;
  std::map<std::string_view, double> by_host;
  for (const auto& node : nodes) {
    auto& most = by_host[node.inventory.host];
    most = std::max(most, core_rate(node, rate));
  }
  const double fastest = fastest_core(nodes, rate);
  std::vector<double> levels;
  for (const auto& node : nodes) {
    const double own = by_host[node.inventory.host];
    levels.push_back(
        own > 0 ? std::pow(level, -std::round(std::log(fastest / own) / std::log(level))) : 1);
  }
  return levels;
}

void level_speeds(std::vector<NodeHere>& nodes) {
  const auto plain = core_levels(nodes, &Speed::plain), best = core_levels(nodes, &Speed::best);
  const double fastest_plain = fastest_core(nodes, &Speed::plain),
               fastest_best = fastest_core(nodes, &Speed::best);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (auto& speed = nodes[i].inventory.speed) {
      speed->plain = nodes[i].inventory.cores * fastest_plain * plain[i];
      speed->best = nodes[i].inventory.cores * fastest_best * best[i];
    }
}

void drop_old_links(std::vector<NodeHere>& nodes, Time now) {
  for (auto& node : nodes) drop_old(node.links, now);
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
    text += (text.empty() ? "" : "; ") + those + ": at most " + std::string(to_string(best));
  return text;
}

NodeHere NodePool::add(std::uint64_t incarnation, std::string wanted, Inventory inventory,
                       std::string key, Time now) {
  const std::lock_guard lock(mutex_);
  if (wanted.empty()) wanted = inventory.host;
  std::string name = wanted;
  for (int number = 2; by_name_.contains(name); ++number)
    name = wanted + "-" + std::to_string(number);
  const auto place = ++joins_;
  by_incarnation_[incarnation] = by_name_[name] = place;
  const auto& node = nodes_[place] = {.incarnation = incarnation,
                                      .name = name,
                                      .inventory = std::move(inventory),
                                      .key = std::move(key),
                                      .joined = now};
  return node;
}

std::optional<NodeHere> NodePool::remove(std::uint64_t incarnation) {
  const std::lock_guard lock(mutex_);
  const auto found = by_incarnation_.find(incarnation);
  if (found == by_incarnation_.end()) return {};
  NodeHere gone = std::move(nodes_.extract(found->second).mapped());
  by_incarnation_.erase(found);
  by_name_.erase(gone.name);
  return gone;
}

/// Returns null if there is no such node. The caller holds the lock.
NodeHere* NodePool::find_here(std::uint64_t incarnation) {
  const auto found = by_incarnation_.find(incarnation);
  return found == by_incarnation_.end() ? nullptr : &nodes_.at(found->second);
}

bool NodePool::cordon(const std::string& name, bool cordoned) {
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return false;
  nodes_.at(found->second).cordoned = cordoned;
  return true;
}

void NodePool::set_away(std::uint64_t incarnation, bool away) {
  const std::lock_guard lock(mutex_);
  auto* const node = find_here(incarnation);
  if (!node || node->away == away) return;
  node->away = away;
}

void NodePool::set_gpus(std::uint64_t incarnation, std::vector<GpuReading> gpus, Time now) {
  const std::lock_guard lock(mutex_);
  auto* const node = find_here(incarnation);
  if (!node) return;
  node->gpus = std::move(gpus);
  node->gpus_told = now;
}

void NodePool::set_load(std::uint64_t incarnation, const MachineLoad& load, Time now) {
  const std::lock_guard lock(mutex_);
  auto* const node = find_here(incarnation);
  if (!node) return;
  node->load = load;
  node->load_told = now;
}

void NodePool::add_link(std::uint64_t incarnation, const std::string& host,
                        const LinkFigures& figures, Time now) {
  const std::lock_guard lock(mutex_);
  if (auto* const node = find_here(incarnation)) actors::add_link(node->links, host, figures, now);
}

std::optional<NodeHere> NodePool::find(std::uint64_t incarnation) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_incarnation_.find(incarnation);
  return found == by_incarnation_.end() ? std::nullopt : std::optional(nodes_.at(found->second));
}

std::vector<NodeHere> NodePool::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<NodeHere> all;
  all.reserve(nodes_.size());
  for (const auto& [_, node] : nodes_) all.push_back(node);
  return all;
}

std::vector<NodeHere> NodePool::usable(kernels::Precision least) const {
  const std::lock_guard lock(mutex_);
  std::vector<NodeHere> found;
  for (const auto& [_, node] : nodes_)
    if (is_usable(node, least)) found.push_back(node);
  return found;
}

int NodePool::count_usable(kernels::Precision least) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::ranges::count_if(
      nodes_, [&](const auto& entry) { return is_usable(entry.second, least); }));
}

}  // namespace troupe::actors
