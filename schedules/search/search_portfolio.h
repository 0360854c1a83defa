#pragma once

#include <functional>

#include "schedules/schedule.h"
#include "schedules/search/search.h"

namespace troupe::schedules {

/// Where a candidate comes from: under a name of its own, or made for the costs.
enum class Origin : std::uint8_t { named, made };

/// What is told of a candidate as it comes; whether to go on.
using Visit = std::function<bool(Schedule schedule, const Costs& costs, Origin origin)>;

/// All candidates of a portfolio in an order that the request alone decides: first the named
/// schedules and a 1f1b fitted to the costs, all of them even if the visitor would rather stop;
/// then lists; then the first ones re-timed. What does not work for the shape is left out.
void visit_portfolio(const SearchRequest& request, const Visit& visit);

/// The least of the lower bounds of all placements in the portfolio.
LowerBound portfolio_bound(const SearchRequest& request);

/// Whether there is an action of this kind.
bool holds(const Schedule& schedule, Kind kind);

/// How many stages a device has in this partition.
int chunks_of(const SearchRequest& request, const Costs& partition);

}  // namespace troupe::schedules
