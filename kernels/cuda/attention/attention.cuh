// Shared by the kernels of attention.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "kernels/attention.h"
#include "kernels/attention_scores.h"
#include "kernels/cuda/launch_queue.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {

constexpr int query_block = 32;
constexpr std::int64_t key_block = 512;

/// Rows of a head; only the first `count` exist.
struct Rows {
  const float* data;
  std::int64_t stride, count;
};

/// A range of keys.
struct KeyRange {
  std::int64_t begin, end;
};

/// A probability and the gradient of its score.
struct Softened {
  float p, ds;
};

/// A query, and its dropout.
struct QueryOf {
  std::int64_t batch, head, position;
  RandomKey key;
};

struct Attention {
  AttentionShape shape;
  HeadsIn q, k, v, out, dout;
  HeadsOut to, dq, dk, dv;  // `to` is the output of the forward pass.
  float* logsumexp;
  float scale;
  const std::int32_t* span;
  const float* biases;  // [heads, diagonals]
  Changing<RandomKey> key;
  std::int32_t kept_from;
  float kept_scale;

  __device__ std::int64_t kv_head_of(std::int64_t head) const {
    return head * shape.kv_heads / shape.heads;
  }
  /// Return the offset of a head's numbers at a position of queries, or of keys.
  __device__ std::int64_t at(std::int64_t row, std::int64_t batch, std::int64_t head,
                             std::int64_t position) const {
    return (batch * shape.length + position) * row + head * shape.width;
  }
  __device__ std::int64_t at_key(std::int64_t row, std::int64_t batch, std::int64_t head,
                                 std::int64_t position) const {
    return (batch * shape.key_count() + position) * row + head * shape.width;
  }
  __device__ Rows rows(const HeadsIn& of, std::int64_t batch, std::int64_t head,
                       std::int64_t position, std::int64_t count) const {
    return {of.data + at(of.row, batch, head, position), of.row, count};
  }
  __device__ Rows key_rows(const HeadsIn& of, std::int64_t batch, std::int64_t head,
                           std::int64_t position, std::int64_t count) const {
    return {of.data + at_key(of.row, batch, head, position), of.row, count};
  }
  __device__ const std::int32_t* span_of(std::int64_t batch, std::int64_t query) const {
    return span + (batch * shape.length + query) * 2;
  }
  /// Returns the keys that are visible to the block of a query, from the begin of a block of keys.
  __device__ KeyRange seen_by_block_of(std::int64_t batch, std::int64_t query) const {
    const std::int64_t first = query / query_block * query_block;
    const std::int64_t end = lesser(first + query_block, shape.length);
    KeyRange seen = {0, shape.key_count()};
    if (shape.mask == Mask::causal) seen = {shape.window == 0 ? 0 : first + 1 - shape.window, end};
    if (span) {
      KeyRange spanned = {seen.end, 0};
      for (std::int64_t i = first; i < end; ++i) {
        const std::int32_t* const own = span_of(batch, i);
        if (own[0] >= own[1]) continue;
        spanned = {lesser(spanned.begin, own[0]), greater(spanned.end, own[1])};
      }
      seen = {greater(seen.begin, spanned.begin), lesser(seen.end, spanned.end)};
    }
    seen.begin = greater(seen.begin, 0) / key_block * key_block;
    return seen;
  }
  /// Returns which of so many keys from `first` on are visible to a query.
  __device__ KeyRange seen_by(std::int64_t batch, std::int64_t query, std::int64_t first,
                              std::int64_t keys) const {
    KeyRange seen = {0, first + keys};
    if (shape.mask == Mask::causal)
      seen = {shape.window == 0 ? 0 : query + 1 - shape.window, query + 1};
    if (span) {
      const std::int32_t* const own = span_of(batch, query);
      seen = {greater(seen.begin, own[0]), lesser(seen.end, own[1])};
    }
    return {lesser(greater(seen.begin - first, 0), keys),
            lesser(greater(seen.end - first, 0), keys)};
  }
  /// Returns the score of a product, and the factor that its exponent still needs.
  __device__ float score(float product, std::int64_t head, std::int64_t query,
                         std::int64_t key_position) const {
    if (biases)
      return fmaf(product, scale,
                  biases[head * shape.diagonals() + key_position - query + shape.length - 1]);
    return shape.cap > 0 ? shape.cap * tanh_of(product * (scale / shape.cap)) : product;
  }
  __device__ float scale_of_score() const { return biases || shape.cap > 0 ? 1.0f : scale; }

  __device__ QueryOf query_of(std::int64_t batch, std::int64_t head, std::int64_t position) const {
    QueryOf query = {batch, head, position, {}};
    if (shape.rate > 0) query.key = dropout_key(key.read(), batch, head, position);
    return query;
  }
  /// Computes dropout of a number that belongs to a key.
  __device__ float dropped(const RandomKey& of_query, std::int64_t key_position,
                           float number) const {
    const auto words = of_query.words(static_cast<std::uint32_t>(key_position / 4));
    // An index that is known only on the device would put the words into slow memory.
    const auto own = static_cast<unsigned>(key_position % 4);
    const std::uint32_t word =
        own < 2 ? (own == 0 ? words[0] : words[1]) : (own == 2 ? words[2] : words[3]);
    return static_cast<std::int32_t>(word >> 8) >= kept_from ? number * kept_scale : 0.0f;
  }
  /// Computes the softmax's backward pass of a product. `p` becomes what dv is a product with.
  __device__ Softened soften(const QueryOf& query, std::int64_t key_position, float product,
                             float dp, float of_logsumexp, float dot) const {
    const bool drops = shape.rate > 0;
    if (drops) dp = dropped(query.key, key_position, dp);
    const float s = score(product, query.head, query.position, key_position);
    const float p = exp_nonpositive(fmaf(s, scale_of_score(), -of_logsumexp));
    float slope = dp - dot;
    if (shape.cap > 0) {
      const float t = s * (1 / shape.cap);
      slope *= fmaf(-t, t, 1.0f);
    }
    return {drops ? dropped(query.key, key_position, p) : p, p * scale * slope};
  }
};

/// Scalar products of some rows with some other rows, computed by a block of threads. Each is one
/// chain in the order of depth. Operands are copied to shared memory piece by piece, so that
/// neighbouring threads read neighbouring numbers.
template <int rows, int columns, int threads>
class Products {
  static constexpr int depth_at_once = 32;
  static constexpr int rows_apart = threads / columns;

 public:
  static constexpr int of_thread = rows / rows_apart;

  struct Shared {
    // One extra column puts neighbours in a column into different banks.
    float a[rows][depth_at_once + 1];
    float b[columns][depth_at_once + 1];
  };

  __device__ static std::int64_t column() { return threadIdx.x % columns; }
  __device__ static std::int64_t row(int i) { return threadIdx.x / columns + i * rows_apart; }

  /// All threads of the block must call it together.
  __device__ Products(Shared& shared, const Rows& a, const Rows& b, std::int64_t width) {
    for (std::int64_t first = 0; first < width; first += depth_at_once) {
      const int depth = static_cast<int>(lesser(depth_at_once, width - first));
      __syncthreads();  // Wait until all threads have read the previous piece.
      read(shared.a, a, first, depth);
      read(shared.b, b, first, depth);
      __syncthreads();
      for (int k = 0; k < depth; ++k) {
        const float of_b = shared.b[column()][k];
        for (int i = 0; i < of_thread; ++i) sums_[i] = fmaf(shared.a[row(i)][k], of_b, sums_[i]);
      }
    }
  }

  /// Returns the product of row(i) and column().
  __device__ float operator[](int i) const { return sums_[i]; }

 private:
  template <int lines>
  __device__ static void read(float (&to)[lines][depth_at_once + 1], const Rows& from,
                              std::int64_t first, int depth) {
    for (int i = static_cast<int>(threadIdx.x); i < lines * depth_at_once; i += threads) {
      const int line = i / depth_at_once, k = i % depth_at_once;
      to[line][k] =
          line < from.count && k < depth ? from.data[line * from.stride + first + k] : 0.0f;
    }
  }

  float sums_[of_thread] = {};
};

/// Computes a scalar product in lanes, with a group of threads.
__device__ inline float dot_of(const float* a, const float* b, std::int64_t width, unsigned lane) {
  float sum = 0;
  for (std::int64_t d = lane; d < width; d += lanes) sum = fmaf(a[d], b[d], sum);
  return sum_of_lanes(sum);
}

}  // namespace troupe::kernels::cuda
