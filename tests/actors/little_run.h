#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/checkpoints.h"
#include "actors/messages.h"
#include "actors/rounds.h"
#include "actors/run_spec.h"
#include "actors/supervisor.h"
#include "core/digest.h"
#include "storage/files.h"
#include "world.h"

namespace troupe::actors {

/// A small model with data that it can learn, and how it shall be trained.
struct Piece {
  std::string model = "mlp";  // mlp, gpt2, llama, vit, resnet: each some units of a small width.
  RoundShape shape;
  std::vector<models::UnitRange> cuts;  // Empty: as even as can be.
  models::OptimizerConfig optimizer;
  models::StalenessOptions staleness;
  std::int64_t steps = 3;
  std::int64_t micro = 2;
  std::optional<std::int64_t> eval_every;
  std::int64_t save_every = 1000;
  double dropout = 0.1;
  bool measures_staleness = false;

  static Piece of(const std::string& model, const RoundShape& shape);
};

/// All that a run of a piece needs beside actors and executors.
class LittleRun {
 public:
  explicit LittleRun(const Piece& piece);
  ~LittleRun();

  /// What the actors are told; `make` gives an executor each time.
  RunSpecPtr spec(const std::function<Executor&()>& make);

  /// The whole model as one stage in a plain loop: what every way of playing must give.
  Digest plainly() const;

  const std::vector<Value>& events() const;
  storage::Files& files();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// In a world with this seed, to the end. The outcome's weights are those of the last step.
struct Played {
  Outcome outcome;
  Digest weights;
  std::uint64_t messages = 0;
  bool ended = false;
  std::vector<Value> events;
  std::size_t bytes_left = 0;  // In all pools, once everything is gone.
};
Played play(const Piece& piece, std::uint64_t seed);
/// One actor is killed after so many messages.
Played play_and_kill(const Piece& piece, std::uint64_t seed);

Digest digest_of_weights(std::vector<NamedTensor> weights);

}  // namespace troupe::actors
