#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/value.h"
#include "simulation/machine/scheduler.h"
#include "tests/sim/data.h"
#include "tests/sim/scenario/fault.h"

namespace troupe::simulation {

/// A cluster, a run and the faults that a seed has drawn.
struct Scenario {
  static constexpr int most_steps = 40;
  static constexpr int steps_between_drains = 4;  // An asynchronous run drains so often.

  std::uint64_t seed = 0;
  bool has_daemons = false;         // Daemons keep the nodes running.
  bool has_two_runs = false;        // They share head and nodes, and have equal settings.
  int nodes = 1;                    // Machines with a node, besides that of the head.
  std::vector<bool> stays_healthy;  // Indexed by machine: all its faults end.
  std::string schedule;
  int stages = 1, replicas = 1, fewest = 1, copies = 1, steps = 12, save_every = 4;
  int micro_batches = 4;
  int evaluate_every = 0;  // 0: it evaluates nothing.
  bool at_server = false;  // Replicas reduce gradients at the first of them.
  /// The remedies of an asynchronous run; empty: the schedule is synchronous. Its stages, schedule
  /// and replicas affect its weights.
  std::string remedies;
  std::string optimizer;
  /// The data of each machine if the run reads a file, else empty. Machines that lack it do
  /// nothing.
  std::vector<DataThere> data;
  Scheduler::Duration slowest_job{0};
  /// With short limits a run gives up soon. A person who resumes it corrects them.
  bool is_impatient = false;
  std::vector<Fault> faults;  // In the order of their times.

  /// Returns whether some machines lack the data file, or have another one.
  bool lacks_data() const;
  /// Returns whether the data of all machines has a sample whose loss is not finite. The run leaves
  /// out the steps that read it.
  bool has_spikes() const { return !data.empty() && data[0] == DataThere::spiky; }
  /// Returns the configuration of the run.
  Value config() const;
  /// Returns a text that equal runs have in common, in which all numbers are the same.
  std::string recipe() const;
  Scheduler::Options options() const;
};
Scenario draw_scenario(std::uint64_t seed);
std::string to_text(const Scenario& scenario);

}  // namespace troupe::simulation
