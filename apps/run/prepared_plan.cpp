#include "apps/run/prepared_plan.h"

#include <string>
#include <utility>
#include <vector>

#include "models/train/shared_parameters.h"

namespace troupe::apps {
namespace {

constexpr int steps_between_drains = 64;

int flush_steps(const config::RunConfig& config, int step_every) {
  if (!config.staleness.flush_every) return steps_between_drains;
  return static_cast<int>(*config.staleness.flush_every) / step_every;
}

Status check_ties(const config::RunConfig& config, const models::Model& model,
                  const schedules::Plan& plan) {
  std::vector<models::UnitRange> ranges;
  for (const auto& stage : plan.stages) ranges.push_back({stage.first, stage.last});
  return models::check_shared(config.staleness, models::shared_parameters(model, ranges));
}

}  // namespace

Result<PreparedPlanPtr> prepare_plan(const config::RunConfig& config, const RunSetup& setup,
                                     const PlanFor& whom) {
  auto request = nominal_request(config, setup, whom.memory);
  if (!request) return request.error();
  if (whom.others_play) request->effort = 0;
  auto plan = schedules::make_plan(*request);
  if (!plan) return plan.error();

  actors::RoundShape shape;
  shape.stages = static_cast<int>(plan->stages.size());
  shape.chunks = plan->chunks;
  shape.replicas = static_cast<int>(plan->replicas.size());
  shape.micro_batches = request->micro_batches;
  shape.groups = request->groups;
  if (is_asynchronous(config)) {
    shape.schedule = config.pipeline.schedule;
    shape.flush_steps = flush_steps(config, shape.micro_batches / shape.replicas);
    shape.synchronous_steps = config.staleness.synchronous_steps;
    for (int stage = 0; stage < shape.stages; ++stage)
      shape.recompute.push_back(config.pipeline.recompute.in(stage));
  } else {
    shape.written = *plan->replicas[0].schedule;
  }
  auto rounds = actors::Rounds::make(shape);
  if (!rounds) return rounds.error();
  if (rounds->asynchronous())
    if (auto good = check_ties(config, setup.model, *plan); !good) return good.error();
  auto memory = schedules::run_memory(config.name, *request, *plan);
  return std::make_shared<const PreparedPlan>(
      PreparedPlan{std::move(*plan), std::move(memory), std::move(*rounds)});
}

}  // namespace troupe::apps
