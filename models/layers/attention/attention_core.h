#pragma once

#include <optional>
#include <vector>

#include "kernels/attention.h"
#include "kernels/rope.h"
#include "models/layer.h"
#include "models/layers/kept_steps.h"

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
  float rate = 0;                           // The rate of dropout of what softmax makes.
  std::uint32_t draw =
      0;  // With a rate: the layer's index among all layers of the model that draw.
  std::optional<int> span{};  // The number of the kept value that says what each position sees.
};

/// Trained biases of distances between positions (kernels/attention_scores.h). Layers may share
/// them.
struct RelativeBiases {
  Parameter table;  // [buckets, heads]
  std::int64_t distance = 0;
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
/// are those of the text's next positions, and there is no data.
void attend_or_continue(const Layer::In& in, const kernels::AttentionShape& shape,
                        kernels::HeadsOf q, kernels::HeadsOf k, kernels::HeadsOf v,
                        kernels::HeadsInto out, Tensor& logsumexp,
                        const kernels::AttentionData& data = {});

/// Attention without projections: normalizes heads, rotates them and attends. Layers that make
/// queries, keys and values use it. Keys and values may have another length than queries.
class AttentionCore {
 public:
  explicit AttentionCore(const AttentionHeads& heads, std::optional<HeadNorms> norms = {},
                         std::optional<RelativeBiases> relative = {});

  const AttentionHeads& heads() const { return heads_; }
  /// The scales of queries and of keys if there are norms, and then the biases of distances.
  std::vector<Parameter> parameters() const;
  int saved() const {
    return (norms_ ? all_saved : without_norms) + (heads_.span ? 1 : 0) + (relative_ ? 1 : 0);
  }
  /// Caches of a text know no spans.
  Reach reach() const { return heads_.span ? Reach::all_rows : reach_of(heads_.mask); }
  /// The caches of a layer that has a core.
  int cached() const { return 1; }
  /// The work for queries from [batch, length, any] and as many keys in a sample.
  Work work(const Shape& queries, std::int64_t keys) const;
  Work work(const Shape& input) const { return work(input, input[1]); }

  /// Takes [batch, length, heads * width] each. `own` are the weights of parameters(), and `in` is
  /// that of the layer.
  Tensor forward(const Layer::In& in, std::span<const Weight> own, Tensor q, Tensor k, Tensor v,
                 Layer::SavedSpan saved) const;
  /// In passes that continue a text: puts keys and values that do not depend on it in the cache.
  void keep_fixed(const Layer::In& in, std::span<const Weight> own, Tensor k,
                  const Tensor& v) const;
  /// Does what forward() does, with the number of keys that were put in the cache.
  Tensor attend_to_fixed(const Layer::In& in, std::span<const Weight> own, Tensor q,
                         std::int64_t keys) const;
  struct Gradients {
    Tensor q, k, v;
  };
  Gradients backward(const Pass& pass, std::span<const Weight> own, const Tensor& dy,
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

  /// Return the places behind these, of the span and of the gradients of biases if they exist.
  std::size_t span_slot() const { return norms_ ? all_saved : without_norms; }
  std::size_t biases_slot() const { return span_slot() + (heads_.span ? 1 : 0); }
  std::size_t own_norms() const { return norms_ ? 2 : 0; }

  kernels::AttentionShape shape_of(const Shape& queries, std::int64_t keys, Mode mode) const;
  /// Returns that of a cache of keys that do not depend on the text.
  kernels::AttentionShape fixed_shape(const Shape& rows, std::int64_t keys) const;
  kernels::AttentionData data_of(const Pass& pass, std::span<const Weight> own,
                                 const Tensor& span) const;

  AttentionHeads heads_;
  std::optional<HeadNorms> norms_;
  std::optional<RelativeBiases> relative_;
};

}  // namespace troupe::models
