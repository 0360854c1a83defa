#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/checkpoints.h"
#include "actors/exchange.h"
#include "actors/lead/supervisor.h"
#include "actors/messages.h"
#include "actors/rounds.h"
#include "actors/run_spec.h"
#include "core/digest.h"
#include "models/layer.h"
#include "storage/checkpoint/ledger.h"
#include "storage/files/memory_files.h"
#include "world.h"

namespace troupe::actors {

/// A fault in one unit of a model during training, applied to the output of its pass.
struct LayerFault {
  using At = std::function<void(const models::Pass&, Tensor&)>;

  int unit = 0;
  At forward;   // May be empty.
  At backward;  // May be empty.
};

/// A small model, data that it can learn, and the training settings.
struct Piece {
  /// mlp, gpt2, llama, vit, resnet, or of tests/own_unet.h: a few units of small width. wide: an
  /// mlp of 92,703 numbers.
  std::string model = "mlp";
  RoundShape shape;
  std::vector<models::UnitRange> cuts;  // Empty: as even as possible.
  models::OptimizerConfig optimizer;
  models::StalenessOptions staleness;
  kernels::Precision precision = kernels::Precision::fp32;
  models::LossScaling loss_scaling;  // Enabled: products are in fp16.
  Exchange exchange = Exchange::all_to_all;
  Exactness exactness = Exactness::bits;
  std::int64_t steps = 3;
  std::int64_t micro = 2;
  std::optional<std::int64_t> eval_every;
  std::int64_t save_every = 1000;
  EarlyStop early_stop;
  int keep_best = 0;
  double dropout = 0.1;
  bool measures_staleness = false;
  std::optional<LayerFault> layer_fault;
  // How many of a sample's first targets do not count. If it is not empty, the model ignores some.
  std::function<std::int64_t(std::int64_t sample)> left_out;
  // Called before a sample is read; may be empty.
  std::function<Status(std::int64_t sample)> on_read;

  static Piece of(const std::string& model, const RoundShape& shape);
  /// Returns the piece in fp16 with a loss scale that overflows in some of the steps, mostly the
  /// first ones.
  Piece in_fp16(std::int64_t of_steps) const;
};

/// The parts of a run besides actors and executors.
class LittleRun {
 public:
  explicit LittleRun(const Piece& piece);
  ~LittleRun();

  /// Returns the actors' spec; `make` is called for each executor.
  std::shared_ptr<RunSpec> spec(const std::function<Executor&()>& make);
  /// Returns the samples of a step.
  std::vector<std::int64_t> samples_of(std::int64_t step) const;
  /// Returns the same samples in another order, as if a loader had another file.
  const storage::MicroBatches& other_batches() const;

  /// Returns the bits of the whole model as one stage in a plain loop, which every plan must match.
  Digest plainly() const;

  const std::vector<Value>& events() const;
  storage::MemoryFiles& files();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Loads the newest checkpoint of a store, or of "checkpoints" in these files.
std::optional<StartPoint> newest_of(CheckpointStore& store, MemoryPool& memory);
std::optional<StartPoint> newest_checkpoint(storage::Files& files, MemoryPool& memory);

/// The results of a run. The outcome's weights are those of the last step.
struct Played {
  Outcome outcome;
  Digest weights;
  std::vector<float> numbers;  // The same weights as numbers, concatenated.
  std::uint64_t messages = 0;
  bool ended = false;
  std::vector<Value> events;
  storage::Audit audit;
  std::size_t bytes_left = 0;              // Bytes in all pools after everything was destroyed.
  std::vector<std::size_t> most_jobs;      // The most jobs that ever waited, by device.
  std::size_t most_reads = 0;              // The most reads that ever waited, over all loaders.
  std::vector<std::uint64_t> allocations;  // Allocations of all pools at the end of each step.

  /// Returns the texts of all events of a type, one per line.
  std::string told(const std::string& type) const;
};

/// A run in a world, which resumes from its newest checkpoint. The spec may be changed before
/// begin().
class Scene {
 public:
  using MakeExecutor = std::function<Executor&(World&)>;

  Scene(
      LittleRun& run, std::uint64_t seed,
      const MakeExecutor& make = [](World& world) -> Executor& { return world.make_executor(); });
  ~Scene();

  World& world() { return world_; }
  RunSpec& spec() { return *spec_; }
  const caf::actor& supervisor() const { return supervisor_; }
  bool ended() const { return outcome_.has_value(); }

  void begin();
  /// Delivers one message; returns false once the run has ended or nobody has mail.
  bool step() { return !ended() && world_.step(); }
  /// Delivers up to `messages` messages.
  void play(std::uint64_t messages);
  Played finish();

 private:
  LittleRun& run_;
  World world_;
  std::vector<Executor*> executors_;
  std::shared_ptr<RunSpec> spec_;
  std::vector<std::uint64_t> allocations_;
  std::optional<Outcome> outcome_;
  caf::actor supervisor_;
};

/// Plays a run from the beginning to the end.
Played play(const Piece& piece, std::uint64_t seed);

/// Plays a run and kills one living actor with one of these names, after a random number of
/// messages below `within`.
Played play_and_kill(const Piece& piece, std::uint64_t seed, std::uint64_t within,
                     const std::set<std::string>& names);

Digest digest_of_weights(std::vector<NamedTensor> weights);
/// Returns all fp32 weights in the order of their names.
std::vector<float> numbers_of_weights(std::vector<NamedTensor> weights);

}  // namespace troupe::actors
