#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "actors/nodes/node_pool.h"
#include "actors/nodes/placement.h"
#include "actors/nodes/shares.h"
#include "core/result.h"

namespace troupe::actors {

/// The assignment of a run's players to nodes.
struct Lineup {
  std::vector<NodeHere> nodes;  // Indexed by process; each node has a device.
  Placement placement;
  std::vector<std::vector<int>> stages = {};  // The stages of each device, by replica, then device.
  double busiest = 0;  // The most work per core of any node, which determines the step time.
};

/// Returns the sharing problem for these nodes, of which at most `most` are used. A core of a node
/// that was measured to be slower counts as a part of one.
Sharing sharing_of(const RunSpec& spec, const std::vector<NodeHere>& nodes, int most);

/// Assigns each share to a node with its core count: to the one that already has most of the
/// share's devices, so that little state moves, or else to the first.
Lineup line_up(const RunSpec& spec, const std::vector<NodeHere>& nodes, const Shares& shares,
               const Lineup& before = {});

/// Returns the error for too few nodes: `fitting` of `all` support the run's precision.
Error too_few(std::size_t fitting, int fewest, kernels::Precision least,
              const std::vector<NodeHere>& all);

/// Returns a text like "alpha: device 0 1; beta: device 2 3".
std::string to_text(const Lineup& lineup);

}  // namespace troupe::actors
