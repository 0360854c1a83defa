#pragma once

#include <optional>

#include "schedules/plan/plan_draft.h"

namespace troupe::schedules {

/// Searches lanes for the devices of a draft, with matching cuts. Returns nothing if the search
/// does not apply: with recomputation, or replicas with different numbers of micro-batches.
std::optional<Plan> search_lanes(const PlanRequest& request, const PlanDraft& draft);

}  // namespace troupe::schedules
