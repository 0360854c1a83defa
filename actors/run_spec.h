#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/early_stop.h"
#include "actors/executor.h"
#include "actors/round.h"
#include "actors/spike_rule.h"
#include "actors/wait.h"
#include "core/result.h"
#include "core/value.h"
#include "models/loss_scale.h"
#include "models/model.h"
#include "models/staleness.h"
#include "models/train/optimizer.h"
#include "models/train/section.h"
#include "models/train/shared_parameters.h"
#include "schedules/simulate/timeline.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/checkpoint/evaluation_log.h"
#include "storage/checkpoint/ledger.h"
#include "storage/data/data_identity.h"
#include "storage/data/micro_batches.h"

namespace troupe::actors {

/// The state that a run starts from. Empty tensors: initial weights are drawn from the seed.
struct StartPoint {
  std::int64_t step = 0;  // Steps that were done.
  std::vector<NamedTensor> weights;
  std::vector<NamedTensor> moments;
  models::LossScale loss_scale;  // The loss scale after those steps, if there is one.
};

class PlayerHost;

/// The store of a run's checkpoints. Within a process only the supervisor calls it.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  /// Returns at once; calls `done` with the outcome on any thread.
  virtual void save(storage::CheckpointContent content, std::function<void(Status)> done) = 0;
  /// Loads the checkpoint of a step. No save may be under way.
  virtual Result<StartPoint> load(std::int64_t step, MemoryPool& memory) = 0;
  /// Returns the steps of all complete checkpoints, the oldest first.
  virtual std::vector<std::int64_t> steps() = 0;
};

/// The data of a run's loaders: one reader for both halves, or one for each, as with two processes.
struct Source {
  const storage::MicroBatches* inputs = nullptr;
  const storage::MicroBatches* targets = nullptr;

  Source() = default;
  Source(const storage::MicroBatches* both) : inputs(both), targets(both) {}
  Source(const storage::MicroBatches* of_inputs, const storage::MicroBatches* of_targets)
      : inputs(of_inputs), targets(of_targets) {}
  explicit operator bool() const { return inputs != nullptr; }
};

/// Whether gradients are clipped by a norm over all stages, for which the stages wait for one
/// another, or by each stage's own norm.
enum class ClipScope : std::uint8_t { all_stages, each_stage };

/// The guarantee across changes of plan: equal bits, or only equal samples in each step.
enum class Exactness : std::uint8_t { bits, samples };

/// Everything that the actors of a run need to know. It is constant while they play.
struct RunSpec {
  std::string name;
  const models::Model* model = nullptr;
  std::vector<models::UnitRange> stages;
  std::vector<double> work;        // Each device's fraction of a replica's step; empty: equal.
  std::vector<models::Keep> keep;  // Indexed by stage.
  std::vector<std::vector<models::Section>> sections;  // Optimizers' sections, by stage.
  models::OptimizerConfig optimizer;
  models::StalenessOptions staleness;
  std::vector<int> delays;  // Steps between the passes in a full pipeline, by stage.
  ClipScope clip = ClipScope::all_stages;
  Exactness exactness = Exactness::bits;
  kernels::Precision precision = kernels::Precision::fp32;
  models::LossScaling loss_scaling;  // On for fp16. It requires one norm over all stages.
  std::uint64_t seed = 0;
  std::int64_t short_rows = models::StageOptions().short_rows;  // Affects no result.

  Source batches;
  Source validation;                 // Optional.
  std::vector<std::string> sources;  // The names of a mixture's sources.
  std::int64_t micro = 1;            // Samples per micro-batch.
  std::int64_t samples_in_step = 1;
  std::int64_t targets_in_step = 1;
  std::int64_t tokens_in_sample = 0;  // 0 if samples do not consist of tokens.

  /// Returns the round that starts after `first_step` steps. It has at most `steps` steps.
  std::function<RoundPtr(std::int64_t first_step, std::int64_t steps)> round;
  RoundPtr evaluation;  // Only the first replica plays it.
  std::int64_t steps = 0;
  std::optional<std::int64_t> eval_every;
  EarlyStop early_stop;
  SpikeRule spikes;
  std::vector<std::int64_t> left_out;  // Steps whose samples change no weights, in order, from 1.
  /// Leaves out the samples of one more step, counted from 1: writes that down, and returns the
  /// changed spec. Empty: nothing can be written.
  std::function<Result<std::shared_ptr<const RunSpec>>(std::int64_t step)> leave_out;
  int keep_best = 0;                  // Evaluated states with the lowest losses that are saved.
  std::int64_t save_every_steps = 0;  // 0: save by time.
  std::int64_t sample_every = 0;      // Steps; states for samples are saved. 0: no samples.
  std::chrono::nanoseconds save_every_time{};
  Value recipe;  // Stored in checkpoints.
  /// The files that samples are read from. They must be equal on all nodes.
  std::vector<storage::DataFile> data;
  Value model_description;  // Stored in checkpoints.

  /// One for each device, by replica, then device; null for devices of other processes. They must
  /// outlive the actors.
  std::vector<Executor*> executors;
  Executor* reader = nullptr;  // Runs the loaders' reads.
  CheckpointStore* checkpoints = nullptr;
  storage::Ledger* ledger = nullptr;  // Only the recorder writes it. Null: no ledger is kept.
  /// Used as the ledger is. Null: the run starts without evaluations.
  storage::EvaluationLog* evaluations = nullptr;
  PlayerHost* player_host = nullptr;         // Null: all players are in this process.
  std::function<void(const Value&)> record;  // Records an event; called only by the recorder.

  int copies = 1;  // Copies of each state in memory, its own process's too; 1: none is kept.
  /// The supervisor's sign of life, called at regular intervals and before anything slow, with what
  /// it does. May be empty.
  std::function<void(const std::string& doing)> alive;

  int rounds_ahead = 2;  // Rounds given out before the first of them is finished.
  /// If set, more rounds are given out, to last this long: then a late supervisor delays nobody.
  std::chrono::nanoseconds lead{};
  int loader_credit = 2;  // Micro-batches that a loader may send before they are taken.
  int strikes = 3;        // Failures within `strike_window` after which a run gives up.
  std::chrono::nanoseconds strike_window = std::chrono::minutes(10);
  std::chrono::nanoseconds stall_patience = std::chrono::seconds(10);  // For reports.
  /// The least numbers that one job draws or packs: 0.1 to 1 s of work.
  std::int64_t first_weights_at_once = std::int64_t{1} << 24;
  Allowed stalls;                   // The time without progress after which an attempt fails.
  int most_unrecorded = 256;        // Events not yet recorded; beyond that the run waits.
  bool measures_staleness = false;  // For the events of steps.
  int trace_rounds = 20;            // The newest rounds, whose actions are all kept.
  std::function<void(const schedules::Timeline&)> keep_timeline;  // May be empty.

  /// Returns whether the samples of a step, counted from 1, change no weights.
  bool leaves_out(std::int64_t step) const { return std::ranges::binary_search(left_out, step); }
  /// Returns the memory in which data for a device is prepared.
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
