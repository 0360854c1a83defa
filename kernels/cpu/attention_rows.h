#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace troupe::kernels::cpu {

/// Scores of some queries against some keys, a row for each query. Row r sees its first
/// seen(r) keys; what is stored for the others counts for nothing.
struct ScoreBlock {
  float* scores = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t seen_by_first = 0;       // May be less than none, or more than all.
  std::int64_t more_for_each_next = 0;  // 1 under a causal mask.

  std::int64_t seen(std::int64_t row) const {
    return std::clamp<std::int64_t>(seen_by_first + row * more_for_each_next, 0, columns);
  }
};

/// The softmax of a row as far as it has come: its greatest scaled score, and the sum of the
/// exponentials relative to that.
struct RunningSoftmax {
  float top = -std::numeric_limits<float>::infinity();
  float sum = 0;
};

struct OutputRows {
  float* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t columns = 0;
};

/// scores = exp(scale scores - top) with the top of this block and those before, 0 where a key is
/// not seen. Brings what `out` holds from the blocks before to the new top.
void soften_scores(const ScoreBlock& block, float scale, RunningSoftmax* running,
                   const OutputRows& out);

/// out /= sum; logsumexp = top + log(sum).
void finish_softmax(const RunningSoftmax* running, std::int64_t rows, const OutputRows& out,
                    float* logsumexp);

/// What backward knows of the rows of a block.
struct SoftmaxGradient {
  const float* logsumexp = nullptr;
  const float* dot = nullptr;  // Of each row's output and its gradient.
  float scale = 0;
};

/// scores = p = exp(scale scores - logsumexp), and dp (stored alike) = p (dp - dot) scale; both 0
/// where a key is not seen.
void soften_gradient(const ScoreBlock& block, const SoftmaxGradient& rows, float* dp);

/// dot[r] = the scalar product of row r of a and row r of b.
struct InputRows {
  const float* data = nullptr;
  std::int64_t stride = 0;
};
void dot_rows(const InputRows& a, const InputRows& b, std::int64_t rows, std::int64_t columns,
              float* dot);

}  // namespace troupe::kernels::cpu
