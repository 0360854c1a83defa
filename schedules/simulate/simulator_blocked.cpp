#include <algorithm>

#include "schedules/simulate/simulator_engine.h"

namespace troupe::schedules {

/// Describes a pass as "1I0 of device 1", and the reason if it can never come.
std::string Simulator::Engine::describe_event(std::uint32_t event, std::uint32_t waiting,
                                              const std::vector<Lane>& lanes) const {
  if (event >= done_.size())
    return "the gradients of stage " + std::to_string(event - done_.size()) +
           " from all who hold it";
  const auto pass = event / micro_batches_;
  const auto stage = pass % stages_;
  const auto m = static_cast<std::uint32_t>(event % micro_batches_);
  auto awaited = pass < stages_ ? forward(static_cast<int>(stage), static_cast<int>(m))
                                : backward(static_cast<int>(stage), static_cast<int>(m));
  const auto id = device_of_[at(route(awaited), stage)];
  const auto& lane = lanes[id];
  const auto found = std::find_if(lane.begin(), lane.end(), [&](Action action) {
    const bool same_pass = action.kind == awaited.kind ||
                           (awaited.kind == Kind::backward && action.kind == Kind::backward_input);
    return same_pass && action.stage == awaited.stage && action.micro_batch == m;
  });
  if (found != lane.end()) awaited.kind = found->kind;
  auto text = to_string(awaited);
  if (id != waiting) text += " of device " + std::to_string(id);
  if (found == lane.end()) return text + ", which is not in its lane";
  if (id == waiting) return text + ", which comes later in its own lane";
  return text;
}

std::string Simulator::Engine::blocked(const std::vector<Lane>& lanes) const {
  constexpr int most = 8;
  int count = 0;
  std::string text;
  for (std::uint32_t id = 0; id < devices_.size(); ++id) {
    const auto& device = devices_[id];
    if (device.position >= lanes[id].size()) continue;
    if (++count > most) continue;
    if (!text.empty()) text += "\n";
    text += "device " + std::to_string(id) + " waits forever at action " +
            std::to_string(device.position) + ", " + to_string(lanes[id][device.position]) +
            ", for " + describe_event(device.waits_for, id, lanes);
  }
  if (count > most) text += "\nand so do " + std::to_string(count - most) + " more devices";
  return text;
}

}  // namespace troupe::schedules
