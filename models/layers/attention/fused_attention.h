#pragma once

#include <cstdint>

#include "models/layer.h"
#include "models/layers/attention/attention_core.h"

namespace troupe::models {

/// Attention with rotary positions or with spans, over rows [batch, length, 3 width] that one
/// projection made of queries, keys and values. It has no parameters.
class FusedAttention final : public Layer {
 public:
  enum class Order : std::uint8_t {
    qkv,       // All queries, all keys, all values.
    per_head,  // For each head its query, key and value, as in GPT-NeoX.
  };
  FusedAttention(AttentionCore core, Order order);

  int saved() const override { return core_.saved(); }
  Reach reach() const override { return core_.reach(); }
  int cached() const override { return core_.cached(); }
  Shape output(const Shape& input) const override { return {input[0], input[1], input[2] / 3}; }
  Work work(const Shape& input) const override { return core_.work(input); }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  /// The place of the queries (0), keys (1) or values (2) in rows of width 3 * `width`.
  struct Third {
    std::int64_t first;    // The offset of the first run of numbers in a row.
    std::int64_t count;    // The runs in a row.
    std::int64_t columns;  // The numbers of a run.
    std::int64_t stride;   // From one run to the next.
  };
  Third third(int index, std::int64_t width) const;

  AttentionCore core_;
  Order order_;
};

}  // namespace troupe::models
