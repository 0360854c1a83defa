#pragma once

#include <optional>

#include "schedules/plan/plan_draft.h"

namespace troupe::schedules {

/// For the devices of a draft, lanes that search() finds, and the cuts that go with them. None
/// where the search does not apply: replicas with different numbers of micro-batches,
/// recomputation.
std::optional<Plan> search_lanes(const PlanRequest& request, const PlanDraft& draft);

}  // namespace troupe::schedules
