#pragma once

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace troupe::schedules {

/// Builds a lane of actions that have a time slot each.
class Slots {
 public:
  /// Adds an action. No two actions may have the same slot.
  void place(std::int64_t slot, Action action) { placed_.push_back({slot, action}); }

  /// Returns the actions, sorted by slot.
  Lane lane() &&;

  /// Returns the lane with a W for each I, in the first free slots after the I, oldest first.
  Lane lane_with_weights() &&;

 private:
  struct Placed {
    std::int64_t slot;
    Action action;
  };
  void sort();

  std::vector<Placed> placed_;
};

}  // namespace troupe::schedules
