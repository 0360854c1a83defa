#pragma once

#include <utility>
#include <vector>

#include "actors/nodes/placement.h"
#include "actors/player_id.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// Between which devices of a run its players send one another tensors. Devices are numbered by
/// replica, then device.
struct Traffic {
  std::vector<int> processes;               // By device.
  std::vector<int> optimizers;              // By optimizer: the device that it computes on.
  std::vector<std::pair<int, int>> routes;  // From one to another, in ascending order.
  /// By stage: the devices of its holders, in their order, where its gradients may be added up on
  /// their way; of other stages none.
  std::vector<std::vector<int>> sums = {};

  /// Nothing else computes on a device: -1.
  int device_of(PlayerId player) const;
};

/// What is sent else, if anything, is left out, and so is what stays on a device.
Traffic traffic_of(const RunSpec& spec, const Placement& placement);

}  // namespace troupe::actors
