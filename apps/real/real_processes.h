#pragma once

#include <memory>

#include "apps/processes.h"

namespace troupe::apps {

/// Forks this program. No process outlives this object or its own process, whatever ends them. The
/// stderr of all processes is copied to the own stderr. A process obeys its keeper alone
/// (apps/machine/keeper.h).
class RealProcesses final : public Processes {
 public:
  RealProcesses();
  /// Waits until the processes that were killed are gone.
  ~RealProcesses() override;

  std::unique_ptr<ChildProcess> start(ProcessOrder order, Loop& loop, Ended ended) override;

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace troupe::apps
