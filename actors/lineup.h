#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "actors/node_pool.h"
#include "actors/placement.h"
#include "core/result.h"

namespace troupe::actors {

/// Who plays what of a run where.
struct Lineup {
  std::vector<NodeHere> nodes;  // By process; each has a device.
  Placement placement;
  double busiest = 0;  // Work for each core of the node that has most of that: as a step takes.
};

/// On as many of these nodes as there are devices, `most` of them at most: on the first of them
/// where all are alike, or else so that the busiest has least to do for its cores.
Lineup line_up(const RunSpec& spec, std::vector<NodeHere> nodes, int most);

/// Why a run cannot begin: so many of the nodes that are there have what it computes in.
Error too_few(std::size_t fitting, int fewest, kernels::Precision least,
              const std::vector<NodeHere>& all);

/// "alpha: device 0 1; beta: device 2 3"
std::string to_text(const Lineup& lineup);

}  // namespace troupe::actors
