#include "kernels/cuda/block_sums.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/tile.cuh"
#include "kernels/steps.h"

namespace troupe::kernels::cuda {
namespace {

/// Rounds a factor once, after it was computed in double.
float rounded(double value) { return static_cast<float>(value); }

struct SgdFactors {
  float scale, decay, mu, minus_lr, momentum_share, gradient_share;
};
struct Sgd {
  Changing<SgdFactors> factors;
  SgdStep::Momentum kind;
  bool is_first;
  const float *w, *gradient;
  float *momentum, *next;
  const float* decay_share;

  template <int n>
  __device__ void at(std::int64_t i) const {
    const SgdFactors by = factors.read();
    const auto weights = read_pack<n>(w, i), gradients = read_pack<n>(gradient, i);
    Pack<float, n> shares, moved, made;
    if (decay_share) shares = read_pack<n>(decay_share, i);
    if (momentum) moved = read_pack<n>(momentum, i);
    for (int k = 0; k < n; ++k) {
      const float shrinking = decay_share ? by.decay * shares[k] : by.decay;
      const float g = fmaf(shrinking, weights[k], by.scale * gradients[k]);
      float direction = g;
      if (momentum) {
        moved[k] = is_first ? g : fmaf(by.mu, moved[k], g);
        switch (kind) {
          case SgdStep::Momentum::plain:
            direction = moved[k];
            break;
          case SgdStep::Momentum::nesterov:
            direction = fmaf(by.mu, moved[k], g);
            break;
          case SgdStep::Momentum::shares:
            direction = fmaf(by.momentum_share, moved[k], by.gradient_share * g);
            break;
        }
      }
      made[k] = fmaf(by.minus_lr, direction, weights[k]);
    }
    if (momentum) write_pack(momentum, i, moved);
    write_pack(next, i, made);
  }
};

struct AdamFactors {
  float into_gradient, kept, lost, scale, eps, beta1, rest1, beta2, rest2;
  float minus_lr_m, minus_lr_g, v_scale;
};
struct Adam {
  Changing<AdamFactors> factors;
  const float *w, *gradient;
  float *m, *v, *next;
  const float* decay_share;

  template <int n>
  __device__ void at(std::int64_t i) const {
    const AdamFactors by = factors.read();
    const auto weights = read_pack<n>(w, i), gradients = read_pack<n>(gradient, i);
    auto firsts = read_pack<n>(m, i), seconds = read_pack<n>(v, i);
    Pack<float, n> shares, made;
    if (decay_share) shares = read_pack<n>(decay_share, i);
    for (int k = 0; k < n; ++k) {
      const float weight = weights[k];
      const float shrinking = decay_share ? by.into_gradient * shares[k] : by.into_gradient;
      const float left = decay_share ? fmaf(by.lost, shares[k], 1.0f) : by.kept;
      const float g = fmaf(shrinking, weight, by.scale * gradients[k]);
      firsts[k] = fmaf(by.beta1, firsts[k], by.rest1 * g);
      seconds[k] = fmaf(by.beta2, seconds[k], by.rest2 * (g * g));
      const float direction = fmaf(by.minus_lr_m, firsts[k], by.minus_lr_g * g);
      const float size = fmaf(sqrtf(seconds[k]), by.v_scale, by.eps);
      made[k] = fmaf(left, weight, direction / size);
    }
    write_pack(m, i, firsts);
    write_pack(v, i, seconds);
    write_pack(next, i, made);
  }
};

struct Accumulate {
  float* a;
  const float* b;
  template <int n>
  __device__ void at(std::int64_t i) const {
    auto sums = read_pack<n>(a, i);
    const auto added = read_pack<n>(b, i);
    for (int k = 0; k < n; ++k) sums[k] += added[k];
    write_pack(a, i, sums);
  }
};

struct Squares {
  using Result = double;
  double sum = 0;

  __device__ void operator()(float x) {
    const double number = x;
    sum = fma(number, number, sum);
  }
  __device__ double of_lanes() const { return sum_of_lanes(sum); }
};

struct FindInfinite {
  const float* x;
  std::int32_t* found;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const auto all = read_pack<n>(x, i);
    bool finite = true;
    for (int k = 0; k < n; ++k) finite = finite && all[k] * 0.0f == 0.0f;
    if (!finite) *found = 1;  // All writers write the same value.
  }
};

}  // namespace

void sgd_step(Stream& stream, const SgdStep& step, const float* w, const float* gradient,
              float* momentum, float* next, std::int64_t count, const float* decay_share) {
  const SgdFactors factors{
      .scale = rounded(step.gradient_scale),
      .decay = rounded(step.weight_decay),
      .mu = rounded(step.momentum),
      .minus_lr = rounded(-step.lr),
      .momentum_share = rounded(step.momentum_share),
      .gradient_share = rounded(step.gradient_share),
  };
  for_packs<in_access<float>>(
      stream, count, are_aligned(w, gradient, momentum, next, decay_share),
      Sgd{queue_of(stream).changing(factors), step.kind, step.turn == SgdStep::Turn::first, w,
          gradient, momentum, next, decay_share});
}

void adam_step(Stream& stream, const AdamStep& step, const float* w, const float* gradient,
               float* m, float* v, float* next, std::int64_t count, const float* decay_share) {
  const bool decoupled = step.decay == WeightDecay::decoupled;
  const AdamFactors factors{
      .into_gradient = rounded(decoupled ? 0 : step.weight_decay),
      .kept = rounded(decoupled ? 1 - step.lr * step.weight_decay : 1),
      .lost = rounded(decoupled ? -step.lr * step.weight_decay : 0),
      .scale = rounded(step.gradient_scale),
      .eps = rounded(step.eps),
      .beta1 = rounded(step.beta1),
      .rest1 = rounded(1 - step.beta1),
      .beta2 = rounded(step.beta2),
      .rest2 = rounded(1 - step.beta2),
      .minus_lr_m = rounded(-step.lr * step.m_scale),
      .minus_lr_g = rounded(-step.lr * step.g_scale),
      .v_scale = rounded(step.v_scale),
  };
  for_packs<in_access<float>>(
      stream, count, are_aligned(w, gradient, m, v, next, decay_share),
      Adam{queue_of(stream).changing(factors), w, gradient, m, v, next, decay_share});
}

void accumulate(Stream& stream, float* a, const float* b, std::int64_t count) {
  for_packs<in_access<float>>(stream, count, are_aligned(a, b), Accumulate{a, b});
}

void squares_of_blocks(Stream& stream, std::span<const std::span<const float>> tensors,
                       double* sums) {
  sum_all_blocks<Squares>(stream, tensors, sums);
}

bool all_finite(Stream& stream, const float* x, std::int64_t count) {
  Tensor there = stream.make({1}, DType::i32);
  check(cudaMemsetAsync(there.raw(), 0, there.bytes(), queue_of(stream).native()));
  for_packs<in_access<float>>(stream, count, are_aligned(x),
                              FindInfinite{x, there.data<std::int32_t>()});
  std::int32_t found = 0;
  read_back(stream, there, &found);
  return found == 0;
}

}  // namespace troupe::kernels::cuda
