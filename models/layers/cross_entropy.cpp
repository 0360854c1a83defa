#include "models/layers/cross_entropy.h"

#include <utility>

#include "kernels/softmax_cross_entropy.h"

namespace troupe::models {

Tensor CrossEntropy::forward(const In& in, Tensor logits, SavedSpan saved, SavedSpan) const {
  const auto rows = logits.shape().rows();
  assert(in.pass.targets.count() == rows);
  Tensor losses = in.pass.stream.make({rows});
  float* gradient = in.pass.mode == Mode::training ? logits.f32() : nullptr;
  kernels::softmax_cross_entropy(in.pass.stream, logits.f32(), in.pass.targets.data<std::int32_t>(),
                                 losses.f32(), gradient, rows, logits.shape().last(),
                                 in.pass.loss_gradient);
  saved[0] = std::move(logits);
  return losses;
}

Tensor CrossEntropy::backward_input(const In&, Tensor, SavedSpan saved) const {
  return std::exchange(saved[0], {});
}

}  // namespace troupe::models
