#include "models/layers/losses/cross_entropy.h"

#include <utility>

#include "kernels/between_layers.h"

namespace troupe::models {

Tensor CrossEntropy::forward(const In& in, Tensor logits, SavedSpan saved, SavedSpan) const {
  const auto rows = logits.shape().rows();
  assert(in.pass.targets.count() == rows);
  Tensor losses = in.pass.stream.make({rows});
  const bool trains = in.pass.mode == Mode::training;
  const auto gradient = trains ? kernels::LogitGradient::wanted : kernels::LogitGradient::unwanted;
  kernels::cross_entropy(in.pass.stream, logits, in.pass.targets, losses, gradient,
                         in.pass.loss_gradient,
                         trains ? form_ : kernels::CrossEntropyForm{.ignore = form_.ignore});
  saved[0] = std::move(logits);
  return losses;
}

Tensor CrossEntropy::backward_input(const In&, Tensor, SavedSpan saved) const {
  return std::exchange(saved[0], {});
}

}  // namespace troupe::models
