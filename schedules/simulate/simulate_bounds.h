#pragma once

#include "schedules/schedule.h"
#include "schedules/simulate/simulate_costs.h"

namespace troupe::schedules {

/// A device's most activations at one time, and the action during which it holds them.
struct Peak {
  double stash = 0;
  int position = 0;
};

/// Returns the peak of a lane. Times do not matter, because a device runs one action at a time. A
/// group allocates before it frees.
Peak peak_of(const Lane& lane, const Costs& costs);

/// Times that no order of the passes can beat, given their placement and costs.
struct LowerBound {
  double makespan = 0;
  double period = 0;
};

/// Computes bounds. The period is at least the largest load of a device. The makespan is at least
/// the time of a device that waits only for its first input, and its last gradient must still
/// travel to stage 0. The costs must fit the schedule; its lanes do not matter.
LowerBound lower_bound(const Schedule& schedule, const Costs& costs);

}  // namespace troupe::schedules
