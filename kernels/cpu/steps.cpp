#include "kernels/steps.h"

#include <atomic>

#include "kernels/cpu/pieces.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/steps.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/fused-inl.h"
#include "kernels/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

using V = FloatVector;

HWY_INLINE V constant(double value) { return hn::Set(Floats(), static_cast<float>(value)); }

void sgd_piece(const SgdStep& step, const float* w, const float* gradient, float* momentum,
               float* next, std::int64_t count) {
  const V scale = constant(step.gradient_scale), decay = constant(step.weight_decay);
  const V mu = constant(step.momentum), minus_lr = constant(-step.lr);
  const bool first = step.turn == SgdStep::Turn::first;
  const bool nesterov = step.kind == SgdStep::Momentum::nesterov;
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    const V weight = at.load(w + i);
    const V g = fused(decay, weight, hn::Mul(scale, at.load(gradient + i)));
    V direction = g;
    if (momentum) {
      const V moved = first ? g : fused(mu, at.load(momentum + i), g);
      at.store(moved, momentum + i);
      direction = nesterov ? fused(mu, moved, g) : moved;
    }
    at.store(fused(minus_lr, direction, weight), next + i);
  });
}

void adam_piece(const AdamStep& step, const float* w, const float* gradient, float* m, float* v,
                float* next, std::int64_t count) {
  const bool decoupled = step.decay == WeightDecay::decoupled;
  const V into_gradient = constant(decoupled ? 0 : step.weight_decay);
  const V kept = constant(decoupled ? 1 - step.lr * step.weight_decay : 1);
  const V scale = constant(step.gradient_scale), eps = constant(step.eps);
  const V beta1 = constant(step.beta1), rest1 = constant(1 - step.beta1);
  const V beta2 = constant(step.beta2), rest2 = constant(1 - step.beta2);
  const V minus_lr_m = constant(-step.lr * step.m_scale);
  const V minus_lr_g = constant(-step.lr * step.g_scale);
  const V v_scale = constant(step.v_scale);
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    const V weight = at.load(w + i);
    const V g = fused(into_gradient, weight, hn::Mul(scale, at.load(gradient + i)));
    const V first = fused(beta1, at.load(m + i), hn::Mul(rest1, g));
    const V second = fused(beta2, at.load(v + i), hn::Mul(rest2, hn::Mul(g, g)));
    at.store(first, m + i);
    at.store(second, v + i);
    const V direction = fused(minus_lr_m, first, hn::Mul(minus_lr_g, g));
    const V size = fused(hn::Sqrt(second), v_scale, eps);
    at.store(fused(kept, weight, hn::Div(direction, size)), next + i);
  });
}

double sum_of_squares_piece(const float* x, std::int64_t count) {
  Lanes<Doubles, 1> lanes(0);
  lanes.walk(count, [=](auto at, std::int64_t i, DoubleVector(&sum)[1]) HWY_ATTR {
    const DoubleVector number = at.load(x + i);
    sum[0] = fused(number, number, sum[0]);
  });
  return lanes.sum();
}

void accumulate_piece(float* a, const float* b, std::int64_t count) {
  each_vector(count, [=](auto at, std::int64_t i)
                         HWY_ATTR { at.store(hn::Add(at.load(a + i), at.load(b + i)), a + i); });
}

bool all_finite_piece(const float* x, std::int64_t count) {
  // 0 times infinity is NaN, and a sum keeps it.
  const V zero = hn::Zero(Floats());
  V sum = zero;
  each_vector(count, [=, &sum](auto at, std::int64_t i)
                         HWY_ATTR { sum = fused(at.load(x + i), zero, sum); });
  return hn::AllTrue(Floats(), hn::Eq(sum, zero));
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels {

using namespace cpu;

HWY_EXPORT(sgd_piece);
HWY_EXPORT(adam_piece);
HWY_EXPORT(sum_of_squares_piece);
HWY_EXPORT(accumulate_piece);
HWY_EXPORT(all_finite_piece);

void sgd_step(Stream& stream, const SgdStep& step, const float* w, const float* gradient,
              float* momentum, float* next, std::int64_t count) {
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(sgd_piece)
    (step, w + first, gradient + first, momentum ? momentum + first : nullptr, next + first, size);
  });
}

void adam_step(Stream& stream, const AdamStep& step, const float* w, const float* gradient,
               float* m, float* v, float* next, std::int64_t count) {
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(adam_piece)
    (step, w + first, gradient + first, m + first, v + first, next + first, size);
  });
}

double sum_of_squares(Stream& stream, const float* x, std::int64_t count) {
  constexpr std::int64_t block = 65536;
  const std::int64_t blocks = (count + block - 1) / block;
  Tensor sums = stream.make({blocks}, DType::f64);
  double* const sum = sums.data<double>();
  for_pieces(stream, count, block, [=](std::int64_t first, std::int64_t size) {
    sum[first / block] = HWY_DYNAMIC_DISPATCH(sum_of_squares_piece)(x + first, size);
  });
  for (std::int64_t width = 1; width < blocks; width *= 2)
    for (std::int64_t i = 0; i + width < blocks; i += 2 * width) sum[i] += sum[i + width];
  return blocks == 0 ? 0 : sum[0];
}

void accumulate(Stream& stream, float* a, const float* b, std::int64_t count) {
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(accumulate_piece)(a + first, b + first, size);
  });
}

bool all_finite(Stream& stream, const float* x, std::int64_t count) {
  std::atomic<bool> finite{true};
  for_elements(stream, count, [&](std::int64_t first, std::int64_t size) {
    if (finite.load(std::memory_order_relaxed) &&
        !HWY_DYNAMIC_DISPATCH(all_finite_piece)(x + first, size))
      finite.store(false, std::memory_order_relaxed);
  });
  return finite;
}

}  // namespace troupe::kernels

#endif
