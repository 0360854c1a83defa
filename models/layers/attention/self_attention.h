#pragma once

#include "kernels/attention.h"
#include "models/layer.h"
#include "models/layers/attention/attention_core.h"

namespace troupe::models {

/// Attention between the positions of a sample, without projections. Each row of the input [batch,
/// length, 3 width] holds a query, a key and a value, each with `heads` heads side by side. On
/// tensor cores the output and the input's gradient are already operands, because a product reads
/// them next.
class SelfAttention final : public Layer {
 public:
  SelfAttention(std::int64_t heads, kernels::Mask mask) : heads_(heads), mask_(mask) {}

  int saved() const override { return 3; }
  Reach reach() const override { return reach_of(mask_); }
  int cached() const override { return 1; }
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
