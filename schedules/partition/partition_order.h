#pragma once

#include <vector>

#include "core/result.h"
#include "schedules/partition/partition.h"

namespace troupe::schedules {

/// A straight pipeline for devices whose order is free. `problem.seats[k].device` and `next` are
/// ignored.
struct OrderProblem {
  PartitionProblem problem;
  /// Devices that stay neighbours, as those of one node: groups[g] lists some of problem.devices.
  std::vector<std::vector<int>> groups;
  Link inside;             // Between two devices of a group.
  Link outside;            // Between groups.
  int most_orders = 2000;  // That are tried; exchanges beyond that are not.
};

/// The devices in the order of the stages, and the cuts. There may be more devices than stages.
struct OrderedPartition {
  std::vector<int> devices;
  Partition partition;
};

/// Starts from the groups as given, by memory and by speed, largest first (early stages hold more
/// micro-batches, and a few fast devices do more than many slow ones), and exchanges two groups as
/// long as the bottleneck shrinks. The same groups always give the same order.
Result<OrderedPartition> partition_any_order(const OrderProblem& problem);

}  // namespace troupe::schedules
