#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/program_context.h"
#include "simulation/machine/env.h"
#include "simulation/machine/executors.h"
#include "simulation/machine/files.h"
#include "simulation/machine/network.h"
#include "simulation/machine/scheduler.h"
#include "simulation/machine/systems.h"
#include "simulation/machine/wires.h"

namespace troupe::simulation {

/// A simulated machine. It outlives its processes.
struct SimulatedMachine {
  SimulatedMachine(Scheduler& scheduler, Wires& wires, const std::string& name)
      : id(wires.add_machine(name)),
        name(name),
        address(wires.address(id)),
        disk(scheduler, name) {}

  const MachineId id;
  const std::string name;
  const std::string address;
  SimulatedDisk disk;
  MachineConditions conditions;
  ExecutorTimes times;
  int cores = 1;
  std::int64_t memory = std::int64_t{4} << 30;
  int processes = 0;  // How many have been started.
};

/// A process on a simulated machine, with everything that a program takes from outside. When it
/// ends, its actors are killed and its objects are destroyed, the newest first.
class SimulatedProcess {
 public:
  SimulatedProcess(Scheduler& scheduler, Wires& wires, SimulatedMachine& machine,
                   const std::string& name)
      : scheduler_(scheduler),
        id_(scheduler.add_process(name, [this](const Ending& ending) { ended(ending); })),
        main_(scheduler.add_queue(id_, "main")),
        env_(scheduler, id_, machine.conditions),
        network_(std::in_place, wires, machine.id, id_),
        files_(machine.disk, id_),
        host_{.host = machine.name,
              .process = ++machine.processes,
              .cores = machine.cores,
              .memory = machine.memory,
              .numa_nodes = 1,
              .precision = "fp32",
              .networks = {{"sim0", machine.address, {}}},
              .command = {"troupe"},
              .folder = "/work"},
        systems_(scheduler, id_),
        executors_(scheduler, id_, machine.times) {}
  ~SimulatedProcess() { kill(); }
  SimulatedProcess(const SimulatedProcess&) = delete;
  SimulatedProcess& operator=(const SimulatedProcess&) = delete;

  ProcessId id() const { return id_; }
  const std::string& name() const { return scheduler_.name(id_); }
  bool is_alive() const { return scheduler_.is_alive(id_); }
  /// Returns how it ended, if it has.
  const std::optional<Ending>& ending() const { return ending_; }
  SimulatedEnv& env() { return env_; }
  apps::ProgramContext program() { return {env_, *network_, files_, host_, systems_, executors_}; }

  /// Runs a task of the main function. Drops it if the process has ended.
  void post(std::function<void()> task) { scheduler_.post(main_, std::move(task)); }
  /// Owns an object until the process ends.
  template <class T>
  T& own(std::unique_ptr<T> object) {
    objects_.push_back(std::shared_ptr<T>(std::move(object)));
    return *std::static_pointer_cast<T>(objects_.back());
  }
  /// Destroys the objects that the process owns, the newest first. For its main function.
  void destroy_objects() {
    while (!objects_.empty()) objects_.pop_back();
  }

  void kill() { scheduler_.kill(id_); }
  /// Ends it as by a fault of the program.
  void fault() { scheduler_.kill(id_, Ending::How::crashed); }
  /// Calls a function when the process has ended and its objects are destroyed. It must not destroy
  /// this object.
  void on_end(std::function<void(const Ending&)> then) { on_end_ = std::move(then); }

 private:
  void ended(const Ending& ending) {
    ending_ = ending;
    systems_.kill_all();
    destroy_objects();
    network_.reset();
    if (on_end_) on_end_(ending);
  }

  Scheduler& scheduler_;
  const ProcessId id_;
  const QueueId main_;
  std::optional<Ending> ending_;
  SimulatedEnv env_;
  std::optional<SimulatedNetwork> network_;
  SimulatedFiles files_;
  const apps::HostFacts host_;
  SimulatedSystems systems_;
  SimulatedExecutors executors_;
  std::vector<std::shared_ptr<void>> objects_;
  std::function<void(const Ending&)> on_end_;
};

}  // namespace troupe::simulation
