#include "kernels/cuda/block_sums.cuh"
#include "kernels/cuda/kernels.h"
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

  __device__ void operator()(std::int64_t i) const {
    const SgdFactors by = factors.read();
    const float weight = w[i];
    const float shrinking = decay_share ? by.decay * decay_share[i] : by.decay;
    const float g = fmaf(shrinking, weight, by.scale * gradient[i]);
    float direction = g;
    if (momentum) {
      const float moved = is_first ? g : fmaf(by.mu, momentum[i], g);
      momentum[i] = moved;
      switch (kind) {
        case SgdStep::Momentum::plain:
          direction = moved;
          break;
        case SgdStep::Momentum::nesterov:
          direction = fmaf(by.mu, moved, g);
          break;
        case SgdStep::Momentum::shares:
          direction = fmaf(by.momentum_share, moved, by.gradient_share * g);
          break;
      }
    }
    next[i] = fmaf(by.minus_lr, direction, weight);
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

  __device__ void operator()(std::int64_t i) const {
    const AdamFactors by = factors.read();
    const float weight = w[i];
    const float shrinking = decay_share ? by.into_gradient * decay_share[i] : by.into_gradient;
    const float left = decay_share ? fmaf(by.lost, decay_share[i], 1.0f) : by.kept;
    const float g = fmaf(shrinking, weight, by.scale * gradient[i]);
    const float first = fmaf(by.beta1, m[i], by.rest1 * g);
    const float second = fmaf(by.beta2, v[i], by.rest2 * (g * g));
    m[i] = first;
    v[i] = second;
    const float direction = fmaf(by.minus_lr_m, first, by.minus_lr_g * g);
    const float size = fmaf(sqrtf(second), by.v_scale, by.eps);
    next[i] = fmaf(left, weight, direction / size);
  }
};

struct Accumulate {
  float* a;
  const float* b;
  __device__ void operator()(std::int64_t i) const { a[i] += b[i]; }
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
  __device__ void operator()(std::int64_t i) const {
    if (!(x[i] * 0.0f == 0.0f)) *found = 1;  // All writers write the same value.
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
  for_elements(stream, count,
               Sgd{queue_of(stream).changing(factors), step.kind, step.turn == SgdStep::Turn::first,
                   w, gradient, momentum, next, decay_share});
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
  for_elements(stream, count,
               Adam{queue_of(stream).changing(factors), w, gradient, m, v, next, decay_share});
}

void accumulate(Stream& stream, float* a, const float* b, std::int64_t count) {
  for_elements(stream, count, Accumulate{a, b});
}

void squares_of_blocks(Stream& stream, std::span<const std::span<const float>> tensors,
                       double* sums) {
  sum_all_blocks<Squares>(stream, tensors, sums);
}

bool all_finite(Stream& stream, const float* x, std::int64_t count) {
  Tensor there = stream.make({1}, DType::i32);
  check(cudaMemsetAsync(there.raw(), 0, there.bytes(), queue_of(stream).native()));
  for_elements(stream, count, FindInfinite{x, there.data<std::int32_t>()});
  std::int32_t found = 0;
  read_back(stream, there, &found);
  return found == 0;
}

}  // namespace troupe::kernels::cuda
