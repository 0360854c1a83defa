#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/stream.h"
#include "models/learning_rate.h"
#include "models/parameter.h"
#include "models/stage.h"

namespace troupe::models {

/// What `optimizer` says in the configuration. Defaults are PyTorch's where PyTorch has the
/// optimizer.
struct OptimizerConfig {
  enum class Kind { sgd, adam, adamw, nadamw, muon };

  Kind kind = Kind::adamw;
  LearningRate rate;
  double momentum = 0;  // sgd, muon
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  double clip_norm = 0;  // 0: no clipping.
};

/// Makes the next version of a stage's weights out of the last one and the gradients of a step.
/// Owns the moments; no message, no thread. One gradient for each tied parameter: (input use) +
/// (output use), each finished first.
class Optimizer {
 public:
  /// `parameters` are a stage's slots; slots of the same name are one parameter.
  Optimizer(const OptimizerConfig& config, std::vector<Parameter> parameters,
            std::vector<Buffer> buffers, kernels::Precision precision);

  /// The first version: drawn by (seed, the parameter's name), so that no plan changes it.
  WeightsPtr initial(Stream& stream, std::uint64_t seed);
  /// The first version from given tensors (a checkpoint, a file). All names must be there, of the
  /// right shapes.
  Result<WeightsPtr> from(Stream& stream, const std::vector<NamedTensor>& tensors,
                          std::int64_t version);

  /// The sum of squares of this stage's gradients, tied uses added up first: the stage's part of
  /// the global norm.
  double squared_norm(Stream& stream, StageGradients& gradients);

  /// `norm` is the global one. Gradients are used up. Buffers take the micro-batches' statistics in
  /// order.
  WeightsPtr step(Stream& stream, const WeightsPtr& weights, StageGradients gradients, double norm);

  /// Weights and buffers of a version, by unique name in the order of the slots.
  std::vector<NamedTensor> named(const Weights& weights) const;
  /// The moments by name; and taking them up again.
  std::vector<NamedTensor> state() const;
  Status restore(const std::vector<NamedTensor>& state, std::int64_t steps_done);
};

}  // namespace troupe::models
