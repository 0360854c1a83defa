#include "schedules/plan/plan_layout.h"

#include <algorithm>
#include <cassert>

namespace troupe::schedules {

bool all_alike(const Cluster& cluster) {
  const ClusterDevice& first = cluster.nodes.front().devices.front();
  return std::ranges::all_of(cluster.nodes, [&](const ClusterNode& node) {
    return std::ranges::all_of(node.devices,
                               [&](const ClusterDevice& device) { return device == first; });
  });
}

Bytes usable_memory(const PlanRequest& request, DevicePlace place) {
  const Bytes memory = at(request.cluster, place).memory;
  return request.memory ? std::min(*request.memory, memory) : memory;
}

std::vector<std::vector<DevicePlace>> lay_out(const PlanRequest& request, int positions,
                                              int replicas) {
  auto devices = places(request.cluster);
  const bool alike = all_alike(request.cluster);
  if (!alike)
    std::ranges::stable_sort(devices, [&](DevicePlace a, DevicePlace b) {
      const Bytes memory_a = usable_memory(request, a);
      const Bytes memory_b = usable_memory(request, b);
      const double speed_a = at(request.cluster, a).speed;
      const double speed_b = at(request.cluster, b).speed;
      return memory_a != memory_b ? memory_a > memory_b : speed_a > speed_b;
    });
  assert(static_cast<int>(devices.size()) >= positions * replicas);
  std::vector<std::vector<DevicePlace>> rows(static_cast<std::size_t>(replicas));
  for (int r = 0; r < replicas; ++r)
    for (int p = 0; p < positions; ++p)
      rows[r].push_back(devices[alike ? r * positions + p : p * replicas + r]);
  return rows;
}

std::vector<int> share_out(const PlanRequest& request,
                           const std::vector<std::vector<DevicePlace>>& places) {
  const int replicas = static_cast<int>(places.size());
  if (request.even && request.groups % replicas == 0)
    return std::vector(places.size(), request.micro_batches / replicas);
  std::vector<double> speeds;
  for (const auto& row : places) {
    double slowest = at(request.cluster, row.front()).speed;
    for (DevicePlace place : row) slowest = std::min(slowest, at(request.cluster, place).speed);
    speeds.push_back(slowest);
  }
  // Assign each group to the replica that would then end first.
  std::vector<int> groups(places.size(), 1);
  for (int group = static_cast<int>(places.size()); group < request.groups; ++group) {
    std::size_t best = 0;
    for (std::size_t r = 1; r < groups.size(); ++r)
      if ((groups[r] + 1) / speeds[r] < (groups[best] + 1) / speeds[best]) best = r;
    ++groups[best];
  }
  for (int& count : groups) count *= request.micro_batches / request.groups;
  return groups;
}

Link slowest_link(const Cluster& cluster, const std::vector<DevicePlace>& from,
                  const std::vector<DevicePlace>& to) {
  Link slowest;
  for (std::size_t r = 0; r < from.size(); ++r) {
    const Link link = link_between(cluster, from[r], to[r]);
    slowest.latency = std::max(slowest.latency, link.latency);
    slowest.bandwidth = std::min(slowest.bandwidth, link.bandwidth);
  }
  return slowest;
}

}  // namespace troupe::schedules
