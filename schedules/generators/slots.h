#pragma once

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace troupe::schedules {

/// Makes a lane of actions that each have a time slot of their own.
class Slots {
 public:
  /// No two actions may have the same slot.
  void place(std::int64_t slot, Action action) { placed_.push_back({slot, action}); }

  /// The actions by slot.
  Lane lane() &&;

  /// The same, with a W for each I: in the first free slots behind it, oldest first.
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
