#include "schedules/simulate/cluster.h"

#include <algorithm>
#include <cassert>

namespace troupe::schedules {

bool ClusterNode::same_class(const ClusterNode& other) const {
  const auto alike = [](const Link& a, const Link& b) {
    return a.latency == b.latency && a.bandwidth == b.bandwidth;
  };
  return zone == other.zone && devices == other.devices && alike(inside, other.inside) &&
         alike(outside, other.outside);
}

int Cluster::device_count() const {
  std::size_t count = 0;
  for (const ClusterNode& node : nodes) count += node.devices.size();
  return static_cast<int>(count);
}

std::vector<DevicePlace> places(const Cluster& cluster) {
  std::vector<DevicePlace> all;
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n)
    for (std::size_t d = 0; d < cluster.nodes[n].devices.size(); ++d)
      all.push_back({static_cast<int>(n), static_cast<int>(d)});
  return all;
}

const ClusterDevice& at(const Cluster& cluster, DevicePlace place) {
  return cluster.nodes.at(place.node).devices.at(place.device);
}

std::string to_string(const Cluster& cluster, DevicePlace place) {
  const auto& name = at(cluster, place).name;
  return cluster.nodes.at(place.node).name + ":" +
         (name.empty() ? std::to_string(place.device) : name);
}

void put_on_gpus(std::vector<ClusterDevice>& devices, const std::vector<Bytes>& gpus) {
  assert(!gpus.empty());
  const std::size_t sharing = (devices.size() + gpus.size() - 1) / gpus.size();
  const auto in_use = std::min(devices.size(), gpus.size());
  const Bytes least =
      *std::min_element(gpus.begin(), gpus.begin() + static_cast<std::ptrdiff_t>(in_use));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].memory =
        least == unknown_memory ? unknown_memory : least / static_cast<Bytes>(sharing);
    devices[i].name = "gpu" + std::to_string(i % gpus.size());
  }
}

namespace {

/// Returns the properties of two links in sequence.
Link slower(const Link& a, const Link& b) {
  return {.latency = std::max(a.latency, b.latency),
          .bandwidth = std::min(a.bandwidth, b.bandwidth)};
}

}  // namespace

Link link_between(const Cluster& cluster, DevicePlace from, DevicePlace to) {
  if (from == to) return {};
  const ClusterNode& a = cluster.nodes.at(from.node);
  const ClusterNode& b = cluster.nodes.at(to.node);
  if (from.node == to.node) return a.inside;
  if (!cluster.measured.empty())
    if (const auto found = cluster.measured.find(std::minmax(a.zone, b.zone));
        found != cluster.measured.end())
      return found->second;
  const Link link = slower(a.outside, b.outside);
  return a.zone == b.zone ? link : slower(link, cluster.between_zones);
}

}  // namespace troupe::schedules
