#pragma once

#include <memory>

#include "actors/rounds.h"
#include "apps/run/plan_request.h"
#include "apps/run/run_setup.h"
#include "config/run_config.h"
#include "core/result.h"
#include "schedules/plan/holdings.h"
#include "schedules/plan/plan.h"

namespace troupe::apps {

/// A plan, the memory that it takes, and its rounds of actions.
struct PreparedPlan {
  schedules::Plan plan;
  schedules::RunMemory memory;
  actors::Rounds rounds;
};
using PreparedPlanPtr = std::shared_ptr<const PreparedPlan>;

/// The environment for which a run is planned.
struct PlanFor {
  MemoryOf memory = MemoryOf::this_machine;  // The memory that the plan must fit.
  bool others_play = false;  // Other processes play too; they know schedules only by name.
};

/// Plans a run as its configuration says, and generates its rounds.
Result<PreparedPlanPtr> prepare_plan(const config::RunConfig& config, const RunSetup& setup,
                                     const PlanFor& whom);

}  // namespace troupe::apps
