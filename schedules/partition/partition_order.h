#pragma once

#include <vector>

#include "core/result.h"
#include "schedules/partition/partition.h"

namespace troupe::schedules {

/// A straight pipeline over devices in any order. Ignores `problem.seats[k].device` and `next`.
struct OrderProblem {
  PartitionProblem problem;
  /// Devices that stay neighbours, such as those of one node: groups[g] lists indices of devices.
  std::vector<std::vector<int>> groups;
  Link inside;             // Between two devices of a group.
  Link outside;            // Between groups.
  int most_orders = 2000;  // The limit of orders tried.
};

/// The devices in stage order, and the cuts. There may be more devices than stages.
struct OrderedPartition {
  std::vector<int> devices;
  Partition partition;
};

/// Tries the given order of groups, by memory and by speed, largest first (early stages hold more
/// micro-batches, and few fast devices do more than many slow ones). Then exchanges two groups
/// while the bottleneck shrinks. Deterministic.
Result<OrderedPartition> partition_any_order(const OrderProblem& problem);

}  // namespace troupe::schedules
