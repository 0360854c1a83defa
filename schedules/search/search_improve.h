#pragma once

#include <cstdint>

#include "schedules/search/search.h"
#include "schedules/search/search_evaluator.h"

namespace troupe::schedules {

/// How far a local search came.
struct Improvement {
  double time = 0;  // Of the objective.
  int evaluations = 0;
  std::int64_t effort = 0;
};

/// Moves actions within their lanes, cuts B's in their halves and joins halves, mostly on the
/// critical path, and keeps what fits and is not slower; until the objective is `goal`, no move has
/// helped for long, or the effort is spent. Passes of a stage keep their order, so what arrives
/// first is used first and gradients are summed as before. A schedule with groups is left as it is.
/// `schedule` is valid before and after.
Improvement improve(Schedule& schedule, const Costs& costs, const SearchRequest& request,
                    Evaluator& evaluator, double goal, std::int64_t effort);

}  // namespace troupe::schedules
