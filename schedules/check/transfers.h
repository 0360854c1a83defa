#pragma once

#include <string>
#include <vector>

#include "schedules/check/pass_table.h"

namespace troupe::schedules {

/// A tensor that one device sends to another, between two passes.
struct Transfer {
  std::uint32_t producer = 0;
  std::uint32_t consumer = 0;
  std::size_t queue = 0;
};

/// The tensors from one device to one stage of another in one direction, in order of consumption.
struct Queue {
  int source = 0;
  int target = 0;
  int stage = 0;              // The consumers' stage.
  Kind kind = Kind::forward;  // backward: the queue carries gradients.
  std::vector<Transfer> transfers;

  /// Describes a queue: "the activations from device 0 for stage 1 on device 1".
  std::string describe() const;
};

/// Returns all queues between different devices, in an order that depends only on the schedule.
std::vector<Queue> queues_of(const Schedule& schedule, const PassTable& passes);

}  // namespace troupe::schedules
