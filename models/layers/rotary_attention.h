#pragma once

#include "kernels/attention.h"
#include "models/layer.h"
#include "models/layers/lora.h"
#include "models/layers/projection.h"

namespace troupe::models {

/// Causal attention of Llama: separate projections to queries, keys and values, rotary positions,
/// and possibly fewer heads of keys and values than of queries. It does not include the output
/// projection.
class RotaryAttention final : public Layer {
 public:
  struct Heads {
    std::int64_t queries = 0;
    std::int64_t keys = 0;
    std::int64_t width = 0;  // The width of a head. Even.
    double theta = 10000;    // The base of the rotation.
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
  // backward_input replaces queries, keys and values by the operands of their gradients.
  enum Saved { input, queries, keys, values, result, log_sums };
  enum Slot { query_slot, key_slot, value_slot };

  kernels::AttentionShape kernel_shape(const Shape& input) const;

  Heads heads_;
  Projection query_, key_, value_;
  Additions additions_;
};

}  // namespace troupe::models
