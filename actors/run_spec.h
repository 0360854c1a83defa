#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/executor.h"
#include "actors/round.h"
#include "actors/wait.h"
#include "core/value.h"
#include "models/loss_scale.h"
#include "models/model.h"
#include "models/staleness.h"
#include "models/train/optimizer.h"
#include "models/train/section.h"
#include "models/train/shared_parameters.h"
#include "schedules/simulate/timeline.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/checkpoint/ledger.h"
#include "storage/data/data_identity.h"
#include "storage/data/micro_batches.h"

namespace troupe::actors {

/// Weights and moments to begin with; nothing in them: drawn by the seed.
struct StartPoint {
  std::int64_t step = 0;  // Steps that were done.
  std::vector<NamedTensor> weights;
  std::vector<NamedTensor> moments;
  models::LossScale loss_scale;  // That they led to, where there were any.
};

class Casting;

/// Where a run's states are kept. In a process the supervisor alone calls it.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  /// Returns at once; `done` hears how it ended, on any thread.
  virtual void save(storage::CheckpointContent content, std::function<void(Status)> done) = 0;
  /// The newest good one; nothing where none was saved yet. Nothing is being saved.
  virtual Result<std::optional<StartPoint>> newest(MemoryPool& memory) = 0;
};

/// Where the loaders of a run read: both the same, or each for itself, as in two processes.
struct Source {
  const storage::MicroBatches* inputs = nullptr;
  const storage::MicroBatches* targets = nullptr;

  Source() = default;
  Source(const storage::MicroBatches* both) : inputs(both), targets(both) {}
  Source(const storage::MicroBatches* of_inputs, const storage::MicroBatches* of_targets)
      : inputs(of_inputs), targets(of_targets) {}
  explicit operator bool() const { return inputs != nullptr; }
};

/// How gradients are clipped: by a norm that all stages agree on, which makes them wait for one
/// another, or each stage by its own.
enum class ClipScope : std::uint8_t { all_stages, each_stage };

/// What no change of plan may change: every bit, or which samples make a step.
enum class Exactness : std::uint8_t { bits, samples };

/// All that the actors of a run need to know. It never changes while they play.
struct RunSpec {
  std::string name;
  const models::Model* model = nullptr;
  std::vector<models::UnitRange> stages;
  std::vector<double> work;        // By device of a replica: its part of a step; empty: all alike.
  std::vector<models::Keep> keep;  // By stage.
  std::vector<std::vector<models::Section>> sections;  // Likewise: what each optimizer steps.
  models::OptimizerConfig optimizer;
  models::StalenessOptions staleness;
  std::vector<int> delays;  // By stage: steps between the passes once the pipeline is full.
  ClipScope clip = ClipScope::all_stages;
  Exactness exactness = Exactness::bits;
  kernels::Precision precision = kernels::Precision::fp32;
  models::LossScaling loss_scaling;  // On for fp16. It wants one norm of all stages.
  std::uint64_t seed = 0;
  std::int64_t short_rows = models::StageOptions().short_rows;  // Changes no number.

  Source batches;
  Source validation;       // May be nothing.
  std::int64_t micro = 1;  // Samples in a micro-batch.
  std::int64_t samples_in_step = 1;
  std::int64_t targets_in_step = 1;
  std::int64_t tokens_in_sample = 0;  // 0 where samples are not made of tokens.

  /// What is played from a step on, up to `steps` steps: rounds are as long as the schedule wants
  /// them, or shorter.
  std::function<RoundPtr(std::int64_t first_step, std::int64_t steps)> round;
  RoundPtr evaluation;  // The first replica alone plays it.
  std::int64_t steps = 0;
  std::optional<std::int64_t> eval_every;
  std::int64_t save_every_steps = 0;  // 0: by time.
  std::chrono::nanoseconds save_every_time{};
  Value recipe;  // For checkpoints.
  /// What its samples are read from: the same on all nodes.
  std::vector<storage::DataFile> data;
  Value model_description;  // Likewise.

  /// One for each device of each replica, replica after replica; null for those of other processes.
  /// They outlive the actors.
  std::vector<Executor*> executors;
  Executor* reader = nullptr;  // Where loaders read.
  CheckpointStore* checkpoints = nullptr;
  storage::Ledger* ledger = nullptr;         // Null: no account is kept. From the recorder alone.
  Casting* casting = nullptr;                // Null: all players are in this process.
  std::function<void(const Value&)> record;  // An event; from the recorder alone.

  int copies = 1;  // Of each state in the memory of nodes, its own process' too; 1: none is kept.
  /// A sign of life of the supervisor, each patience and before whatever may take long: what it
  /// does. May be empty.
  std::function<void(const std::string& doing)> alive;

  int rounds_ahead = 2;  // That are given out before the first of them is through.
  /// Where it is set, as many more as last so long: a supervisor that is late holds nobody up.
  std::chrono::nanoseconds lead{};
  int loader_credit = 2;  // Micro-batches that a loader may send before they are taken.
  int strikes = 3;        // Restarts within `strike_window`, after which a run has failed.
  std::chrono::nanoseconds strike_window = std::chrono::minutes(10);
  std::chrono::nanoseconds stall_patience = std::chrono::seconds(10);  // Then a wait is told.
  /// Numbers that one job draws or packs at least: some 0.1 to 1 s of work.
  std::int64_t first_weights_at_once = std::int64_t{1} << 24;
  Allowed stalls;                   // In which nobody moves; then the attempt has failed.
  int most_unrecorded = 256;        // Events that wait for the recorder; then the run waits too.
  bool measures_staleness = false;  // For the events of steps.
  int trace_rounds = 20;            // The newest ones, whose every action is remembered.
  std::function<void(const schedules::Timeline&)> keep_timeline;  // At the end; may be empty.

  /// Where what goes to a device is made.
  MemoryPool& memory(int replica, int device, int devices_in_replica) const {
    auto* there = executors[static_cast<std::size_t>(replica * devices_in_replica + device)];
    return (there ? there : reader)->host_memory();
  }
  int devices() const { return static_cast<int>(executors.size()); }
  int replicas() const { return devices() / evaluation->devices(); }
  Executor& executor(int replica, int device, int devices_in_replica) const {
    return *executors[static_cast<std::size_t>(replica * devices_in_replica + device)];
  }
};
using RunSpecPtr = std::shared_ptr<const RunSpec>;

}  // namespace troupe::actors
