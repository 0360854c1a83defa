#pragma once

#include <compare>
#include <cstdint>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "core/random.h"

namespace troupe::kernels {

enum class Mask : std::uint8_t { full, causal };

/// Softmax attention of `heads` heads over `kv_heads` heads of keys and values (fewer: grouped
/// queries). Head h reads keys and values of head h * kv_heads / heads. Scores are scaled by 1 /
/// sqrt(width), or by `scale`; then `cap` makes each score s cap * tanh(s / cap), or a trained bias
/// of the distance between key and query is added to it. A query that sees no key gets zeros.
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t length = 0;  // Positions of queries.
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t width = 0;  // Elements of one head.
  Mask mask = Mask::causal;
  std::int64_t window = 0;    // With a causal mask: the last positions that each one sees. 0: all.
  float scale = 0;            // 0: 1 / sqrt(width).
  float cap = 0;              // 0: none.
  std::int64_t keys = 0;      // Positions of keys and values. 0: `length`, as a causal mask needs.
  float rate = 0;             // The rate of dropout of what softmax makes. 0: none.
  std::int64_t buckets = 0;   // The number of biases of distances (attention_scores.h). 0: none.
  std::int64_t distance = 0;  // From this distance on they share one bucket.

  constexpr std::int64_t key_count() const { return keys > 0 ? keys : length; }
  /// Returns how many distances there are between a key and a query. Distance k - q has the index
  /// k - q + length - 1.
  constexpr std::int64_t diagonals() const { return length + key_count() - 1; }

  /// Returns whether libraries of tensor cores compute it, which know nothing behind the mask.
  bool is_plain() const {
    return window == 0 && scale == 0 && cap == 0 && key_count() == length && rate == 0 &&
           buckets == 0;
  }

  auto operator<=>(const AttentionShape&) const = default;
};

/// Numbers laid out as [batch, length, heads, width] with `row` elements from one position to the
/// next, so that the output of a fused projection needs no copy.
template <class Number>
struct Heads {
  Number* data = nullptr;
  std::int64_t row = 0;
};
using HeadsIn = Heads<const float>;
using HeadsOut = Heads<float>;

/// The tensors and keys that attention reads besides queries, keys and values.
struct AttentionData {
  /// [batch, length, 2]: the first key that each query sees, and the end of these keys. The mask
  /// hides some of them. Null: a query sees all keys that the mask shows.
  const std::int32_t* span = nullptr;
  const float* biases = nullptr;  // [buckets, heads], if the shape has buckets.
  RandomKey key = {};  // The key of dropout. Each sample of the batch adds 1 to key.sample.
};

/// out = softmax(scaled q k^T) v. The backward pass needs `logsumexp` [batch, heads, length], which
/// is -infinity for a query that sees no key. Never stores a length x keys matrix. Each (batch,
/// head) is one thread's work.
void attention_forward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k, HeadsIn v,
                       HeadsOut out, float* logsumexp, const AttentionData& data = {});

/// Overwrites dq, dk, dv, and if the shape has buckets, dbiases [buckets, heads]. The gradient of a
/// bias is a sum over samples, of sums over the distances of its bucket, of sums along each
/// distance in the order of the queries in pieces of 128: the order is the same on all machines.
void attention_backward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k,
                        HeadsIn v, HeadsIn out, const float* logsumexp, HeadsIn dout, HeadsOut dq,
                        HeadsOut dk, HeadsOut dv, const AttentionData& data = {},
                        float* dbiases = nullptr);

/// The heads in a tensor [batch, length, columns], from column `first` on.
struct HeadsOf {
  const Tensor& tensor;
  std::int64_t first = 0;
};
struct HeadsInto {
  Tensor& tensor;
  std::int64_t first = 0;
};

/// Computes attention of tensors that all have one type: fp32, or bf16 or fp16 on a device with
/// tensor cores, which chooses the order of its sums.
void attend(Stream& stream, const AttentionShape& shape, HeadsOf q, HeadsOf k, HeadsOf v,
            HeadsInto out, Tensor& logsumexp, const AttentionData& data = {});
void attend_back(Stream& stream, const AttentionShape& shape, HeadsOf q, HeadsOf k, HeadsOf v,
                 HeadsOf out, const Tensor& logsumexp, HeadsOf dout, HeadsInto dq, HeadsInto dk,
                 HeadsInto dv, const AttentionData& data = {}, float* dbiases = nullptr);

}  // namespace troupe::kernels
