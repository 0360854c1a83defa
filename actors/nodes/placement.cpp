#include "actors/nodes/placement.h"

#include <algorithm>
#include <string>
#include <utility>

#include "actors/exchange.h"

namespace troupe::actors {

int Placement::process_of(PlayerId player) const {
  const auto index = static_cast<std::size_t>(player.index);
  switch (player.kind) {
    case PlayerId::Kind::stage:
      return stages.at(index);
    case PlayerId::Kind::optimizer:
      return optimizers.at(index);
    case PlayerId::Kind::inputs:
      return inputs.at(index);
    case PlayerId::Kind::targets:
      return targets.at(index);
    case PlayerId::Kind::supervisor:
      return head();
    case PlayerId::Kind::keeper:
      return player.index;
  }
  return head();
}

Placement place(const RunSpec& spec, std::vector<int> nodes_of_devices, int nodes) {
  const RoundPtr usual = spec.round(0, 1);
  const int devices = usual->devices();
  Placement placement;
  placement.processes = nodes + 1;
  placement.stages = std::move(nodes_of_devices);
  const auto first_holder = [&](int stage) { return holders_of(*usual, stage).front(); };
  const auto at = [&](int replica, int device) {
    const int place = replica * devices + device;
    return placement.stages[static_cast<std::size_t>(place)];
  };
  const int stages = usual->schedule.stages;
  for (int optimizer = 0; optimizer < optimizers_of(spec); ++optimizer) {
    const auto holder = home_of(spec, optimizer);
    placement.optimizers.push_back(at(holder.replica, holder.device));
  }
  for (int replica = 0; replica < spec.replicas(); ++replica) {
    placement.inputs.push_back(at(replica, first_holder(0).device));
    placement.targets.push_back(at(replica, first_holder(stages - 1).device));
  }
  return placement;
}

Status check(const Placement& placement, const RunSpec& spec) {
  const auto fits = [&](const std::vector<int>& processes, std::size_t wanted,
                        const std::string& what) -> Status {
    if (processes.size() != wanted)
      return Error{"the placement names " + std::to_string(processes.size()) + " " + what +
                   ", but the run has " + std::to_string(wanted)};
    for (const int process : processes)
      if (process >= placement.head())
        return Error{"the placement puts one of the " + what + " into process " +
                     std::to_string(process) + ", but nodes are 0.." +
                     std::to_string(placement.head() - 1)};
    return Done{};
  };
  const auto replicas = static_cast<std::size_t>(spec.replicas());
  if (auto good = fits(placement.stages, spec.executors.size(), "devices"); !good) return good;
  const auto optimizers = static_cast<std::size_t>(optimizers_of(spec));
  if (auto good = fits(placement.optimizers, optimizers, "optimizers"); !good) return good;
  if (auto good = fits(placement.inputs, replicas, "loaders of inputs"); !good) return good;
  return fits(placement.targets, replicas, "loaders of targets");
}

}  // namespace troupe::actors
