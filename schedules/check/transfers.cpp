#include "schedules/check/transfers.h"

#include <map>
#include <tuple>

namespace troupe::schedules {

std::string Queue::describe() const {
  return std::string(kind == Kind::forward ? "the activations" : "the gradients") +
         " from device " + std::to_string(source) + " for stage " + std::to_string(stage) +
         " on device " + std::to_string(target);
}

std::vector<Queue> queues_of(const Schedule& schedule, const PassTable& passes) {
  std::vector<Queue> queues;
  std::map<std::tuple<int, int, int, Kind>, std::size_t> index;
  for (int target = 0; target < schedule.devices(); ++target) {
    const Lane& lane = schedule.lanes[target];
    for (std::size_t k = 0; k < lane.size(); ++k) {
      const auto [action_kind, flags, stage, m] = lane[k];
      const bool takes_activation = action_kind == Kind::forward && stage > 0;
      const bool takes_gradient = gives_input_gradient(action_kind) && stage + 1 < schedule.stages;
      if (!takes_activation && !takes_gradient) continue;
      const int source = schedule.route(m)[takes_activation ? stage - 1 : stage + 1];
      if (source == target) continue;
      const Kind kind = takes_activation ? Kind::forward : Kind::backward;
      const auto [entry, is_new] = index.try_emplace({source, target, stage, kind}, queues.size());
      if (is_new) queues.push_back({source, target, stage, kind, {}});
      const std::uint32_t producer =
          takes_activation ? passes.forward(stage - 1, m) : passes.input(stage + 1, m);
      queues[entry->second].transfers.push_back(
          {producer, passes.number(target, k), entry->second});
    }
  }
  return queues;
}

}  // namespace troupe::schedules
