#pragma once

#include <optional>
#include <vector>

#include "kernels/attention.h"
#include "kernels/rope.h"
#include "models/layer.h"

namespace troupe::models {

/// The heads of an attention layer, and what it makes of queries and keys.
struct AttentionHeads {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t width = 0;  // The width of a head.
  kernels::Mask mask = kernels::Mask::causal;
  std::int64_t window = 0;  // See kernels::AttentionShape.
  float scale = 0;
  float cap = 0;
  std::optional<kernels::RopeForm> rope{};  // Nothing: positions are not rotated.
};

/// The scales by which queries and keys of each head are normalized before they are rotated.
struct HeadNorms {
  Parameter query, key;  // [width]
  float eps = 0;
};

inline Reach reach_of(kernels::Mask mask) {
  return mask == kernels::Mask::causal ? Reach::earlier_rows : Reach::all_rows;
}

/// Computes kernels::attend() for a layer with one cache. If the pass continues a text, q, k and v
/// are those of the text's next positions.
void attend_or_continue(const Layer::In& in, const kernels::AttentionShape& shape,
                        kernels::HeadsOf q, kernels::HeadsOf k, kernels::HeadsOf v,
                        kernels::HeadsInto out, Tensor& logsumexp);

/// Attention without projections: normalizes heads, rotates them and attends. Layers that make
/// queries, keys and values use it.
class AttentionCore {
 public:
  explicit AttentionCore(const AttentionHeads& heads, std::optional<HeadNorms> norms = {});

  const AttentionHeads& heads() const { return heads_; }
  /// The scales of queries and of keys, or nothing.
  std::vector<Parameter> parameters() const;
  int saved() const { return norms_ ? all_saved : without_norms; }
  Reach reach() const { return reach_of(heads_.mask); }
  /// The caches of a layer that has a core.
  int cached() const { return 1; }
  /// The work for an input [batch, length, any].
  Work work(const Shape& input) const;

  /// Takes [batch, length, heads * width] each. `norms` are the weights of parameters(), and `in`
  /// is that of the layer.
  Tensor forward(const Layer::In& in, std::span<const Weight> norms, Tensor q, Tensor k, Tensor v,
                 Layer::SavedSpan saved) const;
  struct Gradients {
    Tensor q, k, v;
  };
  Gradients backward(const Pass& pass, std::span<const Weight> norms, const Tensor& dy,
                     Layer::SavedSpan saved) const;
  /// Adds to the gradients of parameters().
  void backward_weight(const Pass& pass, Layer::SavedSpan saved, Layer::SavedSpan gradients) const;

 private:
  enum Saved {
    queries,
    keys,
    values,
    result,
    log_sums,
    without_norms,
    // As they came from the projections, and what the gradients of the norms need.
    raw_queries = without_norms,
    raw_keys,
    query_rstd,
    key_rstd,
    query_gradient,
    key_gradient,
    all_saved
  };

  kernels::AttentionShape shape_of(const Shape& input) const;

  AttentionHeads heads_;
  std::optional<HeadNorms> norms_;
};

}  // namespace troupe::models
