#pragma once

#include "kernels/attention.h"
#include "models/layer.h"

namespace troupe::models {

/// Attention between the positions of a sample, without its projections: each row of the input
/// [batch, length, 3 width] is a query, a key and a value, each with `heads` heads side by side.
/// What comes out goes into a product: on tensor cores it is an operand already, and so is its
/// input's gradient.
class SelfAttention final : public Layer {
 public:
  SelfAttention(std::int64_t heads, kernels::Mask mask) : heads_(heads), mask_(mask) {}

  int saved() const override { return 3; }
  Shape output(const Shape& input) const override;
  Work work(const Shape& input) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  enum Saved { input, result, log_sums };

  kernels::AttentionShape kernel_shape(const Shape& input) const;

  std::int64_t heads_;
  kernels::Mask mask_;
};

}  // namespace troupe::models
