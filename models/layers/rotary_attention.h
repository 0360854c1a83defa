#pragma once

#include "kernels/attention.h"
#include "models/layer.h"
#include "models/layers/projection.h"

namespace troupe::models {

/// Causal attention as Llama has it: projections to queries, keys and values of their own, rotated
/// by position, and fewer heads of keys and values than of queries. Without the projection behind
/// it.
class RotaryAttention final : public Layer {
 public:
  struct Heads {
    std::int64_t queries = 0;
    std::int64_t keys = 0;
    std::int64_t width = 0;  // Of a head; even.
    double theta = 10000;    // Of the rotation.
  };
  struct Projections {
    Parameter query, key, value;
  };
  RotaryAttention(const Heads& heads, Projections projections);

  std::vector<Parameter> parameters() const override;
  int saved() const override { return 6; }
  Shape output(const Shape& input) const override { return query_.output(input); }
  Work work(const Shape& input) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  // Between the halves of the backward pass, a gradient's operand takes the place of the tensor.
  enum Saved { input, queries, keys, values, result, log_sums };
  enum Slot { query_slot, key_slot, value_slot };

  kernels::AttentionShape kernel_shape(const Shape& input) const;

  Heads heads_;
  Projection query_, key_, value_;
};

}  // namespace troupe::models
