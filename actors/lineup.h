#pragma once

#include <string>
#include <vector>

#include "actors/node_pool.h"
#include "actors/placement.h"

namespace troupe::actors {

/// Who plays what of a run where.
struct Lineup {
  std::vector<NodeHere> nodes;  // By process; each has a device.
  Placement placement;
};

/// On the first of these nodes, `most` of them at most.
Lineup line_up(const RunSpec& spec, std::vector<NodeHere> nodes, int most);

/// Devices for each core of the node that has most of that: a step takes as long, but for a factor.
double busiest(const Lineup& lineup);

/// "alpha: device 0 1; beta: device 2 3"
std::string to_text(const Lineup& lineup);

}  // namespace troupe::actors
