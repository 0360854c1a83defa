#pragma once

#include <string>
#include <vector>

#include "schedules/check/pass_table.h"

namespace troupe::schedules {

/// A tensor that goes from one device to another, between two passes.
struct Transfer {
  std::uint32_t producer = 0;
  std::uint32_t consumer = 0;
  std::size_t queue = 0;
};

/// What goes from one device to a stage of another in one direction, in the order of its use.
struct Queue {
  int source = 0;
  int target = 0;
  int stage = 0;              // Of the consumers.
  Kind kind = Kind::forward;  // Or backward, for gradients.
  std::vector<Transfer> transfers;

  /// "the activations from device 0 for stage 1 on device 1"
  std::string describe() const;
};

/// All queues, in an order that only the schedule decides. What stays on a device is not among
/// them.
std::vector<Queue> queues_of(const Schedule& schedule, const PassTable& passes);

}  // namespace troupe::schedules
