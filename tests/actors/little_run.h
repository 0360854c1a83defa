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

/// What goes wrong in one unit of a model, in training: after its pass, with what came out.
struct LayerFault {
  using At = std::function<void(const models::Pass&, Tensor&)>;

  int unit = 0;
  At forward;   // May be empty,
  At backward;  // and so may this.
};

/// A small model with data that it can learn, and how it shall be trained.
struct Piece {
  /// mlp, gpt2, llama, vit, resnet: each some units of a small width; wide: an mlp of 92,703
  /// numbers.
  std::string model = "mlp";
  RoundShape shape;
  std::vector<models::UnitRange> cuts;  // Empty: as even as can be.
  models::OptimizerConfig optimizer;
  models::StalenessOptions staleness;
  kernels::Precision precision = kernels::Precision::fp32;
  models::LossScaling loss_scaling;  // On: products are in fp16.
  Exchange exchange = Exchange::all_to_all;
  Exactness exactness = Exactness::bits;
  std::int64_t steps = 3;
  std::int64_t micro = 2;
  std::optional<std::int64_t> eval_every;
  std::int64_t save_every = 1000;
  double dropout = 0.1;
  bool measures_staleness = false;
  std::optional<LayerFault> layer_fault;
  std::function<Status(std::int64_t sample)> on_read;  // Before a sample is read; may be empty.

  static Piece of(const std::string& model, const RoundShape& shape);
  /// With products in fp16 and a loss scale that overflows in some of so many steps, the first ones
  /// above all.
  Piece in_fp16(std::int64_t of_steps) const;
};

/// All that a run of a piece needs beside actors and executors.
class LittleRun {
 public:
  explicit LittleRun(const Piece& piece);
  ~LittleRun();

  /// What the actors are told; `make` gives an executor each time.
  std::shared_ptr<RunSpec> spec(const std::function<Executor&()>& make);
  /// The same samples in another order, as who sees another file cuts them.
  const storage::MicroBatches& other_batches() const;

  /// The whole model as one stage in a plain loop: what every way of playing must give.
  Digest plainly() const;

  const std::vector<Value>& events() const;
  storage::MemoryFiles& files();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// The outcome's weights are those of the last step.
struct Played {
  Outcome outcome;
  Digest weights;
  std::vector<float> numbers;  // The same, one after another.
  std::uint64_t messages = 0;
  bool ended = false;
  std::vector<Value> events;
  storage::Audit audit;
  std::size_t bytes_left = 0;              // In all pools, once everything is gone.
  std::vector<std::size_t> most_jobs;      // By device: that ever waited at once.
  std::size_t most_reads = 0;              // Likewise, of all loaders.
  std::vector<std::uint64_t> allocations;  // Of all pools, at the end of each step.

  /// The texts of the events of a type, one line each.
  std::string told(const std::string& type) const;
};

/// A run in a world, which goes on from the newest checkpoint that it has. What the actors are told
/// may be changed before begin().
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
  /// One message more; false once the run has ended or nobody has mail.
  bool step() { return !ended() && world_.step(); }
  /// So many messages more, where there are so many.
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

/// From the beginning to the end.
Played play(const Piece& piece, std::uint64_t seed);

/// One living actor with one of these names is killed after some of so many messages.
Played play_and_kill(const Piece& piece, std::uint64_t seed, std::uint64_t within,
                     const std::set<std::string>& names);

Digest digest_of_weights(std::vector<NamedTensor> weights);
/// Of fp32, in the order of their names.
std::vector<float> numbers_of_weights(std::vector<NamedTensor> weights);

}  // namespace troupe::actors
