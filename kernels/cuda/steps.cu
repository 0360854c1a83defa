#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tile.cuh"
#include "kernels/steps.h"

namespace troupe::kernels::cuda {
namespace {

/// Factors are doubles on the way, and rounded once.
float rounded(double value) { return static_cast<float>(value); }

struct Sgd {
  float scale, decay, mu, minus_lr, momentum_share, gradient_share;
  SgdStep::Momentum kind;
  bool is_first;
  const float *w, *gradient;
  float *momentum, *next;
  const float* decay_share;

  __device__ void operator()(std::int64_t i) const {
    const float weight = w[i];
    const float shrinking = decay_share ? decay * decay_share[i] : decay;
    const float g = fmaf(shrinking, weight, scale * gradient[i]);
    float direction = g;
    if (momentum) {
      const float moved = is_first ? g : fmaf(mu, momentum[i], g);
      momentum[i] = moved;
      switch (kind) {
        case SgdStep::Momentum::plain:
          direction = moved;
          break;
        case SgdStep::Momentum::nesterov:
          direction = fmaf(mu, moved, g);
          break;
        case SgdStep::Momentum::shares:
          direction = fmaf(momentum_share, moved, gradient_share * g);
          break;
      }
    }
    next[i] = fmaf(minus_lr, direction, weight);
  }
};

struct Adam {
  float into_gradient, kept, lost, scale, eps, beta1, rest1, beta2, rest2;
  float minus_lr_m, minus_lr_g, v_scale;
  const float *w, *gradient;
  float *m, *v, *next;
  const float* decay_share;

  __device__ void operator()(std::int64_t i) const {
    const float weight = w[i];
    const float shrinking = decay_share ? into_gradient * decay_share[i] : into_gradient;
    const float left = decay_share ? fmaf(lost, decay_share[i], 1.0f) : kept;
    const float g = fmaf(shrinking, weight, scale * gradient[i]);
    const float first = fmaf(beta1, m[i], rest1 * g);
    const float second = fmaf(beta2, v[i], rest2 * (g * g));
    m[i] = first;
    v[i] = second;
    const float direction = fmaf(minus_lr_m, first, minus_lr_g * g);
    const float size = fmaf(sqrtf(second), v_scale, eps);
    next[i] = fmaf(left, weight, direction / size);
  }
};

struct Accumulate {
  float* a;
  const float* b;
  __device__ void operator()(std::int64_t i) const { a[i] += b[i]; }
};

struct Squares {
  const float* x;
  double* sums;
  std::int64_t count;

  __device__ void operator()(std::int64_t block, bool is_block, unsigned lane) const {
    const std::int64_t first = block * block_of_sums;
    const std::int64_t end = std::min(first + block_of_sums, count);
    double sum = 0;
    for (std::int64_t i = first + lane; i < end; i += lanes) {
      const double number = x[i];
      sum = fma(number, number, sum);
    }
    sum = sum_of_lanes(sum);
    if (is_block && lane == 0) sums[block] = sum;
  }
};

struct FindInfinite {
  const float* x;
  std::int32_t* found;
  __device__ void operator()(std::int64_t i) const {
    if (!(x[i] * 0.0f == 0.0f)) *found = 1;  // All who write write the same.
  }
};

}  // namespace

void sgd_step(Stream& stream, const SgdStep& step, const float* w, const float* gradient,
              float* momentum, float* next, std::int64_t count, const float* decay_share) {
  for_elements(
      stream, count,
      Sgd{rounded(step.gradient_scale), rounded(step.weight_decay), rounded(step.momentum),
          rounded(-step.lr), rounded(step.momentum_share), rounded(step.gradient_share), step.kind,
          step.turn == SgdStep::Turn::first, w, gradient, momentum, next, decay_share});
}

void adam_step(Stream& stream, const AdamStep& step, const float* w, const float* gradient,
               float* m, float* v, float* next, std::int64_t count, const float* decay_share) {
  const bool decoupled = step.decay == WeightDecay::decoupled;
  for_elements(stream, count,
               Adam{rounded(decoupled ? 0 : step.weight_decay),
                    rounded(decoupled ? 1 - step.lr * step.weight_decay : 1),
                    rounded(decoupled ? -step.lr * step.weight_decay : 0),
                    rounded(step.gradient_scale), rounded(step.eps), rounded(step.beta1),
                    rounded(1 - step.beta1), rounded(step.beta2), rounded(1 - step.beta2),
                    rounded(-step.lr * step.m_scale), rounded(-step.lr * step.g_scale),
                    rounded(step.v_scale), w, gradient, m, v, next, decay_share});
}

void accumulate(Stream& stream, float* a, const float* b, std::int64_t count) {
  for_elements(stream, count, Accumulate{a, b});
}

void squares_of_blocks(Stream& stream, const float* x, std::int64_t count, double* sums) {
  const std::int64_t blocks = blocks_of_sums(count);
  Tensor there = stream.make({blocks}, DType::f64);
  for_rows(stream, blocks, Squares{x, there.data<double>(), count});
  read_back(stream, there, sums);
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
