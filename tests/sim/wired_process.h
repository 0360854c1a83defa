#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulation/machine/env.h"
#include "simulation/machine/network.h"
#include "simulation/machine/scheduler.h"
#include "simulation/machine/wires.h"

namespace troupe::simulation {

/// A simulated process with an environment and a network. When it ends, they are destroyed, and
/// first of all what it owns.
class WiredProcess {
 public:
  WiredProcess(Scheduler& scheduler, Wires& wires, MachineId machine, const std::string& name)
      : id(scheduler.add_process(name, [this](const Ending&) { clear(); })) {
    env.emplace(scheduler, id, conditions_);
    network.emplace(wires, machine, id);
  }
  ~WiredProcess() { clear(); }
  WiredProcess(const WiredProcess&) = delete;
  WiredProcess& operator=(const WiredProcess&) = delete;

  /// Makes an object that the process owns.
  template <class T, class... Args>
  T& make(Args&&... args) {
    auto object = std::make_shared<T>(std::forward<Args>(args)...);
    objects_.push_back(object);
    return *object;
  }

 private:
  void clear() {
    while (!objects_.empty()) objects_.pop_back();
    network.reset();
    env.reset();
  }

  MachineConditions conditions_;

 public:
  ProcessId id;
  std::optional<SimulatedEnv> env;
  std::optional<SimulatedNetwork> network;

 private:
  std::vector<std::shared_ptr<void>> objects_;  // The newest is destroyed first.
};

}  // namespace troupe::simulation
