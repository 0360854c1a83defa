#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "core/env.h"
#include "simulation/machine/scheduler.h"

namespace troupe::simulation {

/// The conditions that all processes of a machine share. A test may change it at any time.
struct MachineConditions {
  /// The difference between the calendar time of this machine and the right one.
  std::chrono::nanoseconds wall_offset{0};
  /// How long work aside takes. Each work draws its time.
  std::chrono::nanoseconds least_work{0};
  std::chrono::nanoseconds most_work = std::chrono::milliseconds(2);
};

/// The environment of a simulated process: the clock of a scheduler, and a queue for each loop.
/// Once the process has ended, its loops reject all tasks.
class SimulatedEnv final : public Env {
 public:
  /// The calendar time when a simulation begins, on a machine with the right time.
  static constexpr WallTime wall_start{std::chrono::seconds(1'767'225'600)};  // 2026-01-01.

  /// `scheduler` and `machine` must outlive this object.
  SimulatedEnv(Scheduler& scheduler, ProcessId process, const MachineConditions& machine);

  ProcessId process() const { return process_; }
  /// Calls a function at each named point. If the function kills the process, the stack is unwound
  /// there. If it freezes the process, the rest of the task still runs.
  void on_point(std::function<void(const std::string& name)> hook) { hook_ = std::move(hook); }

  Time now() override { return scheduler_.now(); }
  WallTime wall_time() override;
  std::uint64_t random() override { return scheduler_.draw_bits(); }
  std::unique_ptr<Loop> make_loop(LoopOptions options) override;
  /// Ends the simulated process and unwinds the stack. The owner of the process gets the code and
  /// the last words.
  [[noreturn]] void end_process(int code, const std::string& last_words) override;
  [[noreturn]] void crash(const std::string& last_words) override;
  void point(const char* name) override;

 private:
  Scheduler& scheduler_;
  ProcessId process_;
  const MachineConditions& machine_;
  std::function<void(const std::string& name)> hook_;
};

}  // namespace troupe::simulation
