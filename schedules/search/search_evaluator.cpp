#include "schedules/search/search_evaluator.h"

#include <algorithm>
#include <utility>

#include "schedules/operators.h"

namespace troupe::schedules {
namespace {

bool updates_count(const Costs& costs) {
  return std::any_of(costs.stages.begin(), costs.stages.end(),
                     [](const StageCosts& stage) { return stage.reduce > 0 || stage.update > 0; });
}

std::optional<double> ask(Simulator& simulator, const std::vector<Lane>& lanes,
                          Objective objective) {
  switch (objective) {
    case Objective::makespan:
      return simulator.makespan(lanes);
    case Objective::period:
      return simulator.period(lanes);
  }
  return std::nullopt;
}

}  // namespace

Result<Evaluator> Evaluator::make(const Schedule& schedule, const Costs& costs) {
  auto simulator = Simulator::make(schedule, costs);
  if (!simulator) return simulator.error();
  Evaluator evaluator(schedule, std::move(*simulator));
  for (const auto& lane : schedule.lanes)
    evaluator.actions_ += static_cast<std::int64_t>(lane.size());
  if (updates_count(costs)) {
    auto whole = Simulator::make(with_updates(schedule), costs);
    if (!whole) return whole.error();
    evaluator.with_updates_ = std::move(*whole);
    evaluator.actions_ *= 4;  // Placing the updates takes longer than simulating them.
  }
  return evaluator;
}

std::optional<double> Evaluator::time(const std::vector<Lane>& passes, Objective objective) {
  if (!with_updates_) return ask(passes_alone_, passes, objective);
  schedule_.lanes = passes;
  return ask(*with_updates_, with_updates(schedule_).lanes, objective);
}

std::optional<std::size_t> over_cap(const std::vector<Lane>& lanes, const Costs& costs,
                                    const std::vector<double>& caps) {
  for (std::size_t device = 0; device < caps.size(); ++device)
    if (!fits(lanes[device], costs, caps[device])) return device;
  return std::nullopt;
}

bool fits(const Lane& lane, const Costs& costs, double cap) {
  return peak_of(lane, costs).stash <= cap * (1 + 1e-9);
}

}  // namespace troupe::schedules
