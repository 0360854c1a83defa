#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "actors/executors.h"
#include "simulation/machine/scheduler.h"

namespace troupe::simulation {

/// How fast the executors of a machine are. A test may change it at any time.
struct ExecutorTimes {
  std::chrono::nanoseconds least = std::chrono::microseconds(10);
  std::chrono::nanoseconds most = std::chrono::microseconds(500);
  /// An executor of a device that begins a job while this is set fails for ever, with this text.
  std::optional<std::string> fault = {};
};

/// Opens the executors of a simulated process. Each has a queue of the process. Its jobs compute
/// for real, in order, one at a time, and each takes a drawn time of the scheduler's clock. Their
/// messages are sent when that time has passed. A pace changes nothing: ExecutorTimes does.
///
/// An executor finishes no job while it is destroyed: it drops those that wait, as does the end of
/// the process. The owner of an executor that must finish calls actors::finish() before. Simulated
/// machines have no devices: an executor of a device has failed from its beginning.
class SimulatedExecutors final : public actors::Executors {
 public:
  /// `scheduler` and `times` must outlive the executors.
  SimulatedExecutors(Scheduler& scheduler, ProcessId process, const ExecutorTimes& times)
      : scheduler_(scheduler), process_(process), times_(times) {}

  std::unique_ptr<actors::Executor> open(const actors::OnCores& order) override;
  std::unique_ptr<actors::Executor> open(actors::OnDevice order) override;

  /// Returns how many executors are open.
  std::size_t open_executors() const { return *open_; }

 private:
  class Cores;
  class NoDevice;

  Scheduler& scheduler_;
  ProcessId process_;
  const ExecutorTimes& times_;
  const std::shared_ptr<std::size_t> open_ = std::make_shared<std::size_t>(0);
};

}  // namespace troupe::simulation
