#pragma once

#include <utility>
#include <vector>

#include "actors/nodes/placement.h"
#include "actors/player_id.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// The pairs of devices between which a run's players send tensors. Devices are numbered by
/// replica, then device.
struct Traffic {
  std::vector<int> processes;               // The process of each device.
  std::vector<int> optimizers;              // The device on which each optimizer computes.
  std::vector<std::pair<int, int>> routes;  // Sender and receiver, in ascending order.
  /// The devices of each stage's holders, in order, if links may sum its gradients; otherwise
  /// empty.
  std::vector<std::vector<int>> sums = {};

  /// Returns the player's device, or -1 if it computes on none.
  int device_of(PlayerId player) const;
};

/// Finds all regular traffic between different devices.
Traffic traffic_of(const RunSpec& spec, const Placement& placement);

}  // namespace troupe::actors
