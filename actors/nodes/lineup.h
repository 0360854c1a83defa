#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "actors/nodes/node_pool.h"
#include "actors/nodes/placement.h"
#include "actors/nodes/shares.h"
#include "core/result.h"

namespace troupe::actors {

/// Who plays what of a run where.
struct Lineup {
  std::vector<NodeHere> nodes;  // By process; each has a device.
  Placement placement;
  double busiest = 0;  // Work for each core of the node that has most of that: as a step takes.
};

/// What is to be shared out among these nodes, `most` of them at most.
Sharing sharing_of(const RunSpec& spec, const std::vector<NodeHere>& nodes, int most);

/// Each share goes to a node that it is made for: to the one that had most of these devices before,
/// so that little need be moved, or else to the first.
Lineup line_up(const RunSpec& spec, const std::vector<NodeHere>& nodes, const Shares& shares,
               const Lineup& before = {});

/// Why a run cannot begin: so many of the nodes that are there have what it computes in.
Error too_few(std::size_t fitting, int fewest, kernels::Precision least,
              const std::vector<NodeHere>& all);

/// "alpha: device 0 1; beta: device 2 3"
std::string to_text(const Lineup& lineup);

}  // namespace troupe::actors
