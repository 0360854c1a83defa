#pragma once

#include <cstdint>

#include "schedules/search/search.h"
#include "schedules/search/search_evaluator.h"

namespace troupe::schedules {

/// The result of a local search.
struct Improvement {
  double time = 0;  // The value of the objective.
  int evaluations = 0;
  std::int64_t effort = 0;
};

/// Improves a schedule by moves, mostly on the critical path: shifts actions within their lanes,
/// splits B's and joins halves. Keeps a move if the schedule fits and is not slower. Stops at
/// `goal`, after long without a gain, or when the effort is spent. The passes of a stage keep their
/// order, and so do gradient sums. Leaves schedules with groups unchanged. `schedule` is valid
/// before and after.
Improvement improve(Schedule& schedule, const Costs& costs, const SearchRequest& request,
                    Evaluator& evaluator, double goal, std::int64_t effort);

}  // namespace troupe::schedules
