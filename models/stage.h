#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/stream.h"
#include "models/layer.h"
#include "models/model.h"

namespace troupe::models {

/// A range of a model's units, [first, last).
struct UnitRange {
  int first = 0;
  int last = 0;
};

/// Whether a stage keeps all that its backward passes need, or its input alone and computes the
/// rest again.
enum class Keep : std::uint8_t { everything, input };

struct StageOptions {
  kernels::Precision precision = kernels::Precision::fp32;
  Keep keep = Keep::everything;
  std::uint64_t seed = 0;
};

/// Which micro-batch it is, in its step.
struct MicroBatch {
  std::int64_t step = 0;
  int index = 0;
  std::int64_t first_sample = 0;  // Its position in the step's batch.
};

/// What a micro-batch's last forward pass tells: the loss of each target.
struct Losses {
  Tensor each;         // [targets]
  double sum() const;  // In the order of the targets.
  double mean() const;
};

/// The gradients of a stage over a step, and what its buffers shall take: given away whole.
struct StageGradients {
  std::vector<Tensor> slots;  // By parameter slot. Tied parameters: one for each use.
  std::vector<std::vector<Tensor>> statistics;  // By micro-batch in order, then by buffer.
};

/// Consecutive units as one device computes them, with what the micro-batches in flight left
/// behind. Weights are not its own: every pass is told which version it sees. Gradients are added
/// up in the order of the reduction groups: within a group a left fold by micro-batch, across
/// groups one fixed binary tree; so the sum knows nothing of devices.
class Stage {
 public:
  Stage(const Model& model, UnitRange units, const StageOptions& options);

  /// One slot for each parameter that a layer declares, in the order of the layers.
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  bool is_last() const { return loss_ != nullptr; }

  /// Starts a step of `micro_batches` micro-batches, whose gradients are folded in `groups` groups
  /// of consecutive ones.
  void begin_step(int micro_batches, int groups, std::int64_t targets_in_step);

  /// What goes to the next stage. On the last stage: the losses, [targets].
  Tensor forward(Stream& stream, const MicroBatch& m, const Weights& weights, Tensor input,
                 Tensor targets = {});
  /// Makes again what `Keep::input` did not keep. Only in that mode, between the two passes.
  void recompute(Stream& stream, int m, const Weights& weights);
  /// What goes to the previous stage; `dy` is not looked at on the last stage.
  Tensor backward_input(Stream& stream, int m, const Weights& weights, Tensor dy);
  void backward_weight(Stream& stream, int m, const Weights& weights);
  /// Both halves.
  Tensor backward(Stream& stream, int m, const Weights& weights, Tensor dy);

  /// The sum over the step's micro-batches. All of them must be through.
  StageGradients take_gradients(Stream& stream);

  /// Evaluation: nothing is kept. Logits on the last stage where there are no targets, losses where
  /// there are.
  Tensor evaluate(Stream& stream, const Weights& weights, Tensor input, Tensor targets = {}) const;

  int in_flight() const { return static_cast<int>(in_flight_.size()); }

 private:
  struct InFlight {
    MicroBatch id;
    Tensor input;
    Tensor targets;
    std::vector<Tensor> saved;
    std::vector<Tensor> statistics;
  };

  std::vector<const Layer*> layers_;
  const Layer* loss_ = nullptr;
  StageOptions options_;
  std::vector<Parameter> parameters_;
  std::vector<Buffer> buffers_;
  std::map<int, InFlight> in_flight_;
};

}  // namespace troupe::models
