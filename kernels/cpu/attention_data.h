#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "kernels/attention.h"
#include "kernels/attention_scores.h"
#include "kernels/cpu/attention_rows.h"
#include "kernels/dropout.h"
#include "kernels/row_sums.h"

namespace troupe::kernels::cpu {

/// Queries are processed in small blocks, so that a causal mask wastes little work.
constexpr std::int64_t query_block = 32;

/// A range of positions.
struct Range {
  std::int64_t begin;
  std::int64_t end;

  std::int64_t size() const { return end - begin; }
};

/// One head's attention data in a sample, or what stands for none.
struct HeadData {
  const std::int32_t* span = nullptr;  // [length, 2]
  const float* biases = nullptr;       // [diagonals]
  float rate = 0;
  RandomKey key = {};
  std::int64_t batch = 0, head = 0;

  const std::int32_t* span_of(std::int64_t query) const { return span ? span + 2 * query : span; }
  /// Returns the biases of a query for the keys from the given one on.
  const float* biases_of(const AttentionShape& shape, std::int64_t query, std::int64_t key) const {
    return biases ? biases + key - query + shape.length - 1 : nullptr;
  }
  /// Applies dropout to the numbers of some queries, one for each of the keys.
  void drop(float* numbers, const Range& queries, const Range& keys) const {
    if (rate == 0) return;
    for (std::int64_t i = 0; i < queries.size(); ++i) {
      float* const row = numbers + i * key_block;
      drop_elements(dropout_key(key, batch, head, queries.begin + i), rate, keys.begin, row, row,
                    keys.size());
    }
  }
};

/// Makes what each head of a sample reads.
class DataOfHeads {
 public:
  DataOfHeads(Stream& stream, const AttentionShape& shape, const AttentionData& data)
      : shape_(shape), data_(data) {
    assert(shape.mask == Mask::full || shape.key_count() == shape.length);
    if (shape.buckets == 0) return;
    assert(shape.cap == 0 && data.biases);
    biases_ = stream.make({shape.heads, shape.diagonals()});
    stream.for_each(shape.heads, [&](std::int64_t head) {
      float* const to = biases_.f32() + head * shape.diagonals();
      for (std::int64_t i = 0; i < shape.diagonals(); ++i)
        to[i] = data.biases[bucket_of(shape, i - shape.length + 1) * shape.heads + head];
    });
  }

  HeadData of(std::int64_t batch, std::int64_t head) const {
    return {.span = data_.span ? data_.span + batch * shape_.length * 2 : nullptr,
            .biases = biases_.empty() ? nullptr : biases_.f32() + head * shape_.diagonals(),
            .rate = shape_.rate,
            .key = data_.key,
            .batch = batch,
            .head = head};
  }

 private:
  AttentionShape shape_;
  AttentionData data_;
  Tensor biases_;  // [heads, diagonals]
};

/// The sums of the gradients of scores along each distance between key and query. They come in the
/// order of the queries, in pieces.
class DiagonalSums {
 public:
  /// `sums` and `piece` are memory for a number of each distance.
  DiagonalSums(const AttentionShape& shape, float* sums, float* piece)
      : shape_(shape), sums_(sums), piece_(piece) {
    std::fill_n(sums_, shape.diagonals(), 0.0f);
    std::fill_n(piece_, shape.diagonals(), 0.0f);
  }

  void add(const float* ds, const Range& queries, const Range& keys) {
    for (std::int64_t i = 0; i < queries.size(); ++i) {
      const std::int64_t query = queries.begin + i;
      float* const to = piece_ + keys.begin - query + shape_.length - 1;
      const float* const from = ds + i * key_block;
      for (std::int64_t c = 0; c < keys.size(); ++c) to[c] += from[c];
    }
  }
  /// Ends a block of queries.
  void end(const Range& queries) {
    static_assert(rows_in_piece % query_block == 0);
    if (queries.end % rows_in_piece != 0 && queries.end != shape_.length) return;
    for (std::int64_t i = 0; i < shape_.diagonals(); ++i) sums_[i] += piece_[i];
    std::fill_n(piece_, shape_.diagonals(), 0.0f);
  }
  /// Adds the sums of the distances of each bucket. The sum of bucket i goes to to[i * stride].
  void to_buckets(float* to, std::int64_t stride) const {
    for (std::int64_t bucket = 0; bucket < shape_.buckets; ++bucket) to[bucket * stride] = 0;
    for (std::int64_t i = 0; i < shape_.diagonals(); ++i)
      to[bucket_of(shape_, i - shape_.length + 1) * stride] += sums_[i];
  }

 private:
  AttentionShape shape_;
  float *sums_, *piece_;
};

}  // namespace troupe::kernels::cpu
