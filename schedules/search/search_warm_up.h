#pragma once

#include <vector>

#include "schedules/simulate/simulate_costs.h"

namespace troupe::schedules {

/// How many forward passes each stage of a 1f1b does before its first backward pass so that
/// micro-batches follow one another as closely as the caps allow, whatever the stages and hops
/// take; one stage on each device. At most `micro_batches` each, and never growing from stage to
/// stage. Empty if some stage may not hold even one; `caps` may be empty.
std::vector<int> best_warm_up(const Costs& costs, const std::vector<double>& caps,
                              int micro_batches);

}  // namespace troupe::schedules
