#pragma once

#include <vector>

#include "schedules/simulate/simulate_costs.h"

namespace troupe::schedules {

/// Returns the number of forward passes that each stage of a 1f1b runs before its first backward
/// pass, so that micro-batches follow one another as closely as the caps allow. Needs one stage per
/// device. The values are at most `micro_batches` and never grow from stage to stage. Returns
/// nothing if a stage cannot hold one micro-batch. `caps` may be empty.
std::vector<int> best_warm_up(const Costs& costs, const std::vector<double>& caps,
                              int micro_batches);

}  // namespace troupe::schedules
