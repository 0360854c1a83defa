#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "actors/caf_shim.h"
#include "simulation/machine/caf_scheduler.h"
#include "simulation/machine/scheduler.h"

namespace troupe::simulation {

/// Makes the actor systems of a simulated process, which the scheduler runs. It outlives them.
///
/// After the process has ended, its owner calls kill_all(), and then destroys what has actors.
class SimulatedSystems final : public actors::caf_shim::Systems {
 public:
  SimulatedSystems(Scheduler& scheduler, ProcessId process)
      : scheduler_(scheduler), process_(process) {}
  SimulatedSystems(const SimulatedSystems&) = delete;
  SimulatedSystems& operator=(const SimulatedSystems&) = delete;

  std::unique_ptr<actors::caf_shim::System> make() override;

  /// Ends all actors of all systems, as CafScheduler::kill_all().
  void kill_all();
  /// Returns how many systems there are.
  std::size_t count() const { return systems_.size(); }

 private:
  class Made;

  Scheduler& scheduler_;
  ProcessId process_;
  std::size_t made_ = 0;
  std::map<std::size_t, CafScheduler*> systems_;  // In the order in which they were made.
};

}  // namespace troupe::simulation
