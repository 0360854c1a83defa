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

/// A plan, what is held by it, and what is played.
struct PreparedPlan {
  schedules::Plan plan;
  schedules::RunMemory memory;
  actors::Rounds rounds;
};
using PreparedPlanPtr = std::shared_ptr<const PreparedPlan>;

/// For whom it is planned.
struct PlanFor {
  MemoryOf memory = MemoryOf::this_machine;  // That the plan has to fit.
  bool others_play = false;                  // Other processes, which know schedules by name.
};

/// Plans a run as its configuration says, and makes its rounds.
Result<PreparedPlanPtr> prepare_plan(const config::RunConfig& config, const RunSetup& setup,
                                     const PlanFor& whom);

}  // namespace troupe::apps
