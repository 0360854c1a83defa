#pragma once

#include <cstdint>
#include <span>

#include "core/memory/stream.h"

namespace troupe::kernels {

/// A step updates `count` weights. It writes new weights to `next`, because weights that others may
/// hold never change, and moments in place. `next` may be `w`. `gradient_scale` multiplies every
/// gradient first, to clip it. `decay_share`, if not null, multiplies the weight decay element by
/// element. Factors are doubles, so that 1 - beta2 and the like are rounded once.
struct SgdStep {
  double lr, momentum, weight_decay, gradient_scale;
  enum class Momentum : std::uint8_t { plain, nesterov, shares } kind;
  enum class Turn : std::uint8_t {
    first,
    later
  } turn;  // The first step sets the momentum to the gradient, as PyTorch does.
  double momentum_share = 1, gradient_share = 0;
};
/// Computes g += decay w and momentum = mu momentum + g. Then next = w - lr momentum if plain, w -
/// lr (g + mu momentum) if nesterov, or w - lr (momentum_share momentum + gradient_share g). If
/// `momentum` is null, next = w - lr g.
void sgd_step(Stream& stream, const SgdStep& step, const float* w, const float* gradient,
              float* momentum, float* next, std::int64_t count, const float* decay_share = nullptr);
void sgd_step(Stream& stream, const SgdStep& step, const double* w, const double* gradient,
              double* momentum, double* next, std::int64_t count,
              const double* decay_share = nullptr);

/// Whether weight decay is added to the gradient (Adam) or applied to the weights (AdamW).
enum class WeightDecay : std::uint8_t { coupled, decoupled };

/// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
/// next = w - lr ( m_scale m + g_scale g ) / ( sqrt(v) * v_scale + eps ), after w -= lr decay w if
/// decoupled. Adam: m_scale = 1 / (1 - b1^t), g_scale = 0, v_scale = 1 / sqrt(1 - b2^t); NAdam sets
/// both scales.
struct AdamStep {
  double lr, beta1, beta2, eps, weight_decay, gradient_scale;
  double m_scale, g_scale, v_scale;
  WeightDecay decay;
};
void adam_step(Stream& stream, const AdamStep& step, const float* w, const float* gradient,
               float* m, float* v, float* next, std::int64_t count,
               const float* decay_share = nullptr);
void adam_step(Stream& stream, const AdamStep& step, const double* w, const double* gradient,
               double* m, double* v, double* next, std::int64_t count,
               const double* decay_share = nullptr);

/// The number of elements of a block that is summed by itself. Shards may begin at any block.
constexpr std::int64_t block_of_sums = 65'536;
constexpr std::int64_t blocks_of_sums(std::int64_t count) {
  return (count + block_of_sums - 1) / block_of_sums;
}
/// Computes the sum of squares of each block in double, in 16 lanes: element i of a block goes to
/// lane i % 16. Writes the sums of all tensors in order to `sums`, which must lie where the
/// stream's kernels compute. A device sums many tensors with one launch.
void squares_of_blocks(Stream& stream, std::span<const std::span<const float>> tensors,
                       double* sums);
void squares_of_blocks(Stream& stream, std::span<const std::span<const double>> tensors,
                       double* sums);
/// Adds up the sums by a tree whose shape depends on their number alone. Overwrites `sums`.
double sum_of_blocks(double* sums, std::int64_t blocks);
/// Runs both functions and returns the sum of squares of all elements.
double sum_of_squares(Stream& stream, const float* x, std::int64_t count);
double sum_of_squares(Stream& stream, const double* x, std::int64_t count);

/// a += b.
void accumulate(Stream& stream, float* a, const float* b, std::int64_t count);
void accumulate(Stream& stream, double* a, const double* b, std::int64_t count);

bool all_finite(Stream& stream, const float* x, std::int64_t count);

}  // namespace troupe::kernels
