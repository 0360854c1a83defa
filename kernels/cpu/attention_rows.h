#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/attention.h"

namespace troupe::kernels::cpu {

/// Sums over keys take them in blocks that begin at multiples of this, so that their scores stay in
/// the second-level cache.
constexpr std::int64_t key_block = 512;

inline float scale_of(const AttentionShape& shape) {
  return shape.scale != 0 ? shape.scale : 1 / std::sqrt(static_cast<float>(shape.width));
}

/// Returns the head of keys and values that a head of queries reads.
inline std::int64_t kv_head_of(const AttentionShape& shape, std::int64_t head) {
  return head * shape.kv_heads / shape.heads;
}

/// Scores of some queries (rows) against some keys (columns). Row r sees the keys from
/// passed(r) to seen(r); scores of other keys are ignored.
struct ScoreBlock {
  float* scores = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t seen_by_first = 0;       // May be below 0 or above `columns`.
  std::int64_t more_for_each_next = 0;  // 1 under a causal mask.
  /// The keys before the window of the first row. Far below 0: there is no window.
  std::int64_t passed_by_first = std::numeric_limits<std::int64_t>::min() / 2;
  /// The first position and the end of the keys that each row sees at most, or null. `first_key` is
  /// the position of the first column.
  const std::int32_t* spans = nullptr;
  std::int64_t first_key = 0;

  std::int64_t seen(std::int64_t row) const {
    std::int64_t end = seen_by_first + row * more_for_each_next;
    if (spans) end = std::min<std::int64_t>(end, spans[2 * row + 1] - first_key);
    return std::clamp<std::int64_t>(end, 0, columns);
  }
  std::int64_t passed(std::int64_t row) const {
    std::int64_t end = passed_by_first + row * more_for_each_next;
    if (spans) end = std::max<std::int64_t>(end, spans[2 * row] - first_key);
    return std::clamp<std::int64_t>(end, 0, columns);
  }
};

/// The factor on the product of a query and a key, and the cap of the result, or 0, or biases that
/// are added to the result, or null. They are those of the first row, with one for each column. The
/// biases of each next row begin one earlier in memory.
struct ScoreForm {
  float scale = 0;
  float cap = 0;
  const float* biases = nullptr;
};

/// The state of a row's online softmax: the greatest scaled score so far, and the sum of the
/// exponentials relative to it.
struct RunningSoftmax {
  float top = -std::numeric_limits<float>::infinity();
  float sum = 0;
};

struct OutputRows {
  float* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t columns = 0;
};

/// scores = exp(s - top) with s the score in its form, or 0 for unseen keys; `top` is the greatest
/// scaled score of this and earlier blocks. Rescales `out`, the result of earlier blocks, to the
/// new top.
void soften_scores(const ScoreBlock& block, const ScoreForm& form, RunningSoftmax* running,
                   const OutputRows& out);

/// out /= sum; logsumexp = top + log(sum). A row that saw no key gets 0 and -infinity.
void finish_softmax(const RunningSoftmax* running, std::int64_t rows, const OutputRows& out,
                    float* logsumexp);

/// The inputs of the softmax's backward pass, for the rows of a block.
struct SoftmaxGradient {
  const float* logsumexp = nullptr;
  const float* dot = nullptr;  // The scalar product of each row's output and its gradient.
  ScoreForm form{};
};

/// scores = p = exp(s - logsumexp) with s the score in its form, and dp (stored alike) = p (dp -
/// dot) scale (1 - (s / cap)^2), without the last factor if there is no cap. Both are 0 for keys
/// that are not seen.
void soften_gradient(const ScoreBlock& block, const SoftmaxGradient& rows, float* dp);

/// dot[r] = the scalar product of row r of a and row r of b.
struct InputRows {
  const float* data = nullptr;
  std::int64_t stride = 0;
};
void dot_rows(const InputRows& a, const InputRows& b, std::int64_t rows, std::int64_t columns,
              float* dot);

}  // namespace troupe::kernels::cpu
