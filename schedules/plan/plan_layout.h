#pragma once

#include <vector>

#include "schedules/plan/plan.h"

/// Which devices a plan uses; part of make_plan().
namespace troupe::schedules {

/// Places by replica, then position. Equal devices are taken node by node, so that a pipeline
/// crosses as few nodes as possible. Of unequal ones the largest and fastest are taken, and the
/// devices at one position are as alike as possible: a stage is as slow as the slowest of them.
std::vector<std::vector<DevicePlace>> lay_out(const PlanRequest& request, int positions,
                                              int replicas);

/// Micro-batches by replica: whole reduction groups, so that the slowest replica ends as early as
/// possible.
std::vector<int> share_out(const PlanRequest& request,
                           const std::vector<std::vector<DevicePlace>>& places);

/// What a plan may use of a device.
Bytes usable_memory(const PlanRequest& request, DevicePlace place);

/// Whether all devices of a cluster have the same speed and memory.
bool all_alike(const Cluster& cluster);

/// The slowest link from any place of the first list to that of the second with the same number.
Link slowest_link(const Cluster& cluster, const std::vector<DevicePlace>& from,
                  const std::vector<DevicePlace>& to);

}  // namespace troupe::schedules
