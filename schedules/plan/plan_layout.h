#pragma once

#include <vector>

#include "schedules/plan/plan.h"

/// The choice of devices; part of make_plan().
namespace troupe::schedules {

/// Returns places by replica, then position. Takes equal devices node by node, so that a pipeline
/// spans few nodes. Takes the largest and fastest of unequal devices, and puts similar ones at one
/// position, because the slowest of them sets the stage's speed.
std::vector<std::vector<DevicePlace>> lay_out(const PlanRequest& request, int positions,
                                              int replicas);

/// Returns micro-batches by replica, in whole reduction groups, so that the slowest replica ends
/// early.
std::vector<int> share_out(const PlanRequest& request,
                           const std::vector<std::vector<DevicePlace>>& places);

/// Returns the memory of a device that a plan may use.
Bytes usable_memory(const PlanRequest& request, DevicePlace place);

/// Returns whether all devices of a cluster have equal speed and memory.
bool all_alike(const Cluster& cluster);

/// Returns the slowest of the links from[k] to to[k].
Link slowest_link(const Cluster& cluster, const std::vector<DevicePlace>& from,
                  const std::vector<DevicePlace>& to);

}  // namespace troupe::schedules
