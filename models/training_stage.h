#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "models/optimizer.h"
#include "models/stage.h"
#include "models/staleness.h"

namespace troupe::models {

/// Micro-batches between two drains of a pipeline: those of one step, or of many steps where steps
/// come amid the passes.
struct Round {
  /// Steps of this stage between the forward and the backward pass of each micro-batch.
  std::vector<int> delays;
  /// Backward passes of this stage from one step to the next. The last step may have fewer.
  int step_every = 1;
  /// What of every step's micro-batches passes here.
  Share share;
  std::int64_t targets_in_step = 1;  // Of all shares together.
};

/// Weights that a stage has from another one, which owns them: tied parameters.
struct Loan {
  std::string name;
  std::int64_t tag = 0;  // Equal tags: the same numbers.
  Tensor value;
};

/// A stage as it trains: beside the passes it knows which weights each of them sees. It adopts the
/// versions that its optimizer publishes, and holds an old one for as long as a micro-batch needs
/// it. Micro-batches are numbered from 0 in each round, and a number is the same on all stages.
class TrainingStage {
 public:
  /// `borrowed` are parameters that an earlier stage owns. The model must outlive this.
  TrainingStage(const Model& model, UnitRange units, const StageOptions& options,
                const StalenessOptions& staleness, const OptimizerConfig& optimizer,
                std::vector<std::string> borrowed);

  const Stage& passes() const { return stage_; }

  /// The round before is through, and its gradients were taken.
  void begin_round(Round round);

  /// From now on the newest version.
  void adopt(Version newest);
  std::int64_t version() const { return newest_.weights->version; }

  /// As Stage has them. `m.index` counts in the round, and forward passes come in that order. The
  /// loans are those of the same micro-batch, one for each borrowed parameter.
  Tensor forward(Stream& stream, const MicroBatch& m, Tensor input, Tensor targets,
                 std::span<const Loan> loans);
  void recompute(Stream& stream, int m);
  Tensor backward_input(Stream& stream, int m, Tensor dy);
  void backward_weight(Stream& stream, int m);
  Tensor backward(Stream& stream, int m, Tensor dy);

  /// What another stage needs to see the same weights for micro-batch `m`, whose forward pass was
  /// here.
  Loan lend(int m, const std::string& name) const;

  /// In an evaluation: of the newest version.
  Loan lend_newest(const std::string& name) const;

  /// The sum over the backward passes since the last step.
  GradientShare take_gradients(Stream& stream);

  /// Evaluation with the newest weights: nothing is kept.
  Tensor evaluate(Stream& stream, Tensor input, Tensor targets, std::span<const Loan> loans) const;

 private:
  WeightsPtr with_loans(Stream& stream, std::span<const Loan> loans) const;

  Stage stage_;
  kernels::Precision precision_;
  std::vector<std::string> borrowed_;
  Version newest_;
  Round round_;
  std::map<int, WeightsPtr> seen_;
};

}  // namespace troupe::models
