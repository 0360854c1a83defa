#pragma once

#include "schedules/schedule.h"
#include "schedules/simulate/simulate_costs.h"

namespace troupe::schedules {

/// The most activations that a device holds, and while which action of its lane.
struct Peak {
  double stash = 0;
  int position = 0;
};

/// Of the order alone: a device does one thing at a time, so times do not matter. A group takes
/// before it gives.
Peak peak_of(const Lane& lane, const Costs& costs);

/// What no order of the passes can beat, given where they are and what they cost.
struct LowerBound {
  double makespan = 0;
  double period = 0;
};

/// The period is at least the largest load of a device. The makespan is at least that of a device
/// that waits for its first input, then never again; nor can it end before its last gradient has
/// travelled back to stage 0. The costs must fit the schedule, whose lanes do not matter.
LowerBound lower_bound(const Schedule& schedule, const Costs& costs);

}  // namespace troupe::schedules
