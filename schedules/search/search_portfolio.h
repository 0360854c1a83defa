#pragma once

#include <functional>

#include "schedules/schedule.h"
#include "schedules/search/search.h"

namespace troupe::schedules {

/// The origin of a candidate: a named schedule, or one made for the costs.
enum class Origin : std::uint8_t { named, made };

/// The callback for each candidate; returns whether to continue.
using Visit = std::function<bool(Schedule schedule, const Costs& costs, Origin origin)>;

/// Visits all candidates in an order that depends only on the request: the named schedules and a
/// 1f1b fitted to the costs, which are always visited in full; then lists; then re-timed ones.
/// Skips candidates that do not suit the shape.
void visit_portfolio(const SearchRequest& request, const Visit& visit);

/// Returns the smallest lower bound over all placements in the portfolio.
LowerBound portfolio_bound(const SearchRequest& request);

/// Returns whether the schedule has an action of this kind.
bool holds(const Schedule& schedule, Kind kind);

/// Returns the stages per device of a partition.
int chunks_of(const SearchRequest& request, const Costs& partition);

}  // namespace troupe::schedules
