#include "kernels/steps.h"

#include <atomic>

#include "kernels/cpu/parts/pieces.h"
#include "kernels/cpu/parts/targets.h"
#include "kernels/device_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/steps.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/fused-inl.h"
#include "kernels/cpu/parts/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

template <class T>
using Tag = hn::CappedTag<T, virtual_lanes>;
template <class T>
using VectorOf = hn::Vec<Tag<T>>;

template <class T>
HWY_INLINE VectorOf<T> constant(double value) {
  return hn::Set(Tag<T>(), static_cast<T>(value));
}

template <class T>
HWY_INLINE void sgd(const SgdStep& step, const T* w, const T* gradient, T* momentum, T* next,
                    std::int64_t count, const T* decay_share) {
  using V = VectorOf<T>;
  const V scale = constant<T>(step.gradient_scale), decay = constant<T>(step.weight_decay);
  const V mu = constant<T>(step.momentum), minus_lr = constant<T>(-step.lr);
  const V momentum_share = constant<T>(step.momentum_share);
  const V gradient_share = constant<T>(step.gradient_share);
  const bool first = step.turn == SgdStep::Turn::first;
  each_vector<Tag<T>>(count, [=](auto at, std::int64_t i) HWY_ATTR {
    const V weight = at.load(w + i);
    const V shrinking = decay_share ? hn::Mul(decay, at.load(decay_share + i)) : decay;
    const V g = fused(shrinking, weight, hn::Mul(scale, at.load(gradient + i)));
    V direction = g;
    if (momentum) {
      const V moved = first ? g : fused(mu, at.load(momentum + i), g);
      at.store(moved, momentum + i);
      switch (step.kind) {
        case SgdStep::Momentum::plain:
          direction = moved;
          break;
        case SgdStep::Momentum::nesterov:
          direction = fused(mu, moved, g);
          break;
        case SgdStep::Momentum::shares:
          direction = fused(momentum_share, moved, hn::Mul(gradient_share, g));
          break;
      }
    }
    at.store(fused(minus_lr, direction, weight), next + i);
  });
}

template <class T>
HWY_INLINE void adam(const AdamStep& step, const T* w, const T* gradient, T* m, T* v, T* next,
                     std::int64_t count, const T* decay_share) {
  using V = VectorOf<T>;
  const bool decoupled = step.decay == WeightDecay::decoupled;
  const V into_gradient = constant<T>(decoupled ? 0 : step.weight_decay);
  const V kept = constant<T>(decoupled ? 1 - step.lr * step.weight_decay : 1);
  const V lost = constant<T>(decoupled ? -step.lr * step.weight_decay : 0), one = constant<T>(1);
  const V scale = constant<T>(step.gradient_scale), eps = constant<T>(step.eps);
  const V beta1 = constant<T>(step.beta1), rest1 = constant<T>(1 - step.beta1);
  const V beta2 = constant<T>(step.beta2), rest2 = constant<T>(1 - step.beta2);
  const V minus_lr_m = constant<T>(-step.lr * step.m_scale);
  const V minus_lr_g = constant<T>(-step.lr * step.g_scale);
  const V v_scale = constant<T>(step.v_scale);
  each_vector<Tag<T>>(count, [=](auto at, std::int64_t i) HWY_ATTR {
    const V weight = at.load(w + i);
    const V shrinking =
        decay_share ? hn::Mul(into_gradient, at.load(decay_share + i)) : into_gradient;
    const V left = decay_share ? fused(lost, at.load(decay_share + i), one) : kept;
    const V g = fused(shrinking, weight, hn::Mul(scale, at.load(gradient + i)));
    const V first = fused(beta1, at.load(m + i), hn::Mul(rest1, g));
    const V second = fused(beta2, at.load(v + i), hn::Mul(rest2, hn::Mul(g, g)));
    at.store(first, m + i);
    at.store(second, v + i);
    const V direction = fused(minus_lr_m, first, hn::Mul(minus_lr_g, g));
    const V size = fused(hn::Sqrt(second), v_scale, eps);
    at.store(fused(left, weight, hn::Div(direction, size)), next + i);
  });
}

template <class T>
HWY_INLINE double sum_of_squares_of(const T* x, std::int64_t count) {
  Lanes<Doubles, 1> lanes(0);
  lanes.walk(count, [=](auto at, std::int64_t i, DoubleVector(&sum)[1]) HWY_ATTR {
    const DoubleVector number = at.load(x + i);
    sum[0] = fused(number, number, sum[0]);
  });
  return lanes.sum();
}

template <class T>
HWY_INLINE void accumulate_of(T* a, const T* b, std::int64_t count) {
  each_vector<Tag<T>>(count, [=](auto at, std::int64_t i) HWY_ATTR {
    at.store(hn::Add(at.load(a + i), at.load(b + i)), a + i);
  });
}

// Functions for dynamic dispatch need a separate name for each type.

void sgd_f32(const SgdStep& step, const float* w, const float* gradient, float* momentum,
             float* next, std::int64_t count, const float* decay_share) {
  sgd(step, w, gradient, momentum, next, count, decay_share);
}
void sgd_f64(const SgdStep& step, const double* w, const double* gradient, double* momentum,
             double* next, std::int64_t count, const double* decay_share) {
  sgd(step, w, gradient, momentum, next, count, decay_share);
}
void adam_f32(const AdamStep& step, const float* w, const float* gradient, float* m, float* v,
              float* next, std::int64_t count, const float* decay_share) {
  adam(step, w, gradient, m, v, next, count, decay_share);
}
void adam_f64(const AdamStep& step, const double* w, const double* gradient, double* m, double* v,
              double* next, std::int64_t count, const double* decay_share) {
  adam(step, w, gradient, m, v, next, count, decay_share);
}
double sum_of_squares_f32(const float* x, std::int64_t count) {
  return sum_of_squares_of(x, count);
}
double sum_of_squares_f64(const double* x, std::int64_t count) {
  return sum_of_squares_of(x, count);
}
void accumulate_f32(float* a, const float* b, std::int64_t count) { accumulate_of(a, b, count); }
void accumulate_f64(double* a, const double* b, std::int64_t count) { accumulate_of(a, b, count); }

bool all_finite_piece(const float* x, std::int64_t count) {
  // 0 times infinity or NaN is NaN, and the sum stays NaN.
  const FloatVector zero = hn::Zero(Floats());
  FloatVector sum = zero;
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

HWY_EXPORT(sgd_f32);
HWY_EXPORT(sgd_f64);
HWY_EXPORT(adam_f32);
HWY_EXPORT(adam_f64);
HWY_EXPORT(sum_of_squares_f32);
HWY_EXPORT(sum_of_squares_f64);
HWY_EXPORT(accumulate_f32);
HWY_EXPORT(accumulate_f64);
HWY_EXPORT(all_finite_piece);

namespace {

template <class T>
T* from(T* numbers, std::int64_t first) {
  return numbers ? numbers + first : nullptr;
}

template <class Piece, class T>
void sgd_by(Piece piece, Stream& stream, const SgdStep& step, const T* w, const T* gradient,
            T* momentum, T* next, std::int64_t count, const T* decay_share) {
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    piece(step, w + first, gradient + first, from(momentum, first), next + first, size,
          from(decay_share, first));
  });
}

template <class Piece, class T>
void adam_by(Piece piece, Stream& stream, const AdamStep& step, const T* w, const T* gradient, T* m,
             T* v, T* next, std::int64_t count, const T* decay_share) {
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    piece(step, w + first, gradient + first, m + first, v + first, next + first, size,
          from(decay_share, first));
  });
}

template <class T>
double sum_of_squares_of_all(Stream& stream, const T* x, std::int64_t count) {
  const std::int64_t blocks = blocks_of_sums(count);
  Tensor sums = stream.make({blocks}, DType::f64);
  const std::span all(x, static_cast<std::size_t>(count));
  squares_of_blocks(stream, {&all, 1}, sums.data<double>());
  Tensor here = stream.to_host(std::move(sums));
  stream.wait();
  return sum_of_blocks(here.data<double>(), blocks);
}

template <class Piece, class T>
void squares_of_blocks_by(Piece piece, Stream& stream, std::span<const std::span<const T>> tensors,
                          double* sums) {
  for (const auto& tensor : tensors) {
    const auto count = static_cast<std::int64_t>(tensor.size());
    for_pieces(stream, count, block_of_sums, [&](std::int64_t first, std::int64_t size) {
      sums[first / block_of_sums] = piece(tensor.data() + first, size);
    });
    sums += blocks_of_sums(count);
  }
}

template <class Piece, class T>
void accumulate_by(Piece piece, Stream& stream, T* a, const T* b, std::int64_t count) {
  for_elements(stream, count,
               [=](std::int64_t first, std::int64_t size) { piece(a + first, b + first, size); });
}

}  // namespace

void sgd_step(Stream& stream, const SgdStep& step, const float* w, const float* gradient,
              float* momentum, float* next, std::int64_t count, const float* decay_share) {
  if (const auto* there = kernels_of(stream))
    return there->sgd_step(stream, step, w, gradient, momentum, next, count, decay_share);
  sgd_by(HWY_DYNAMIC_DISPATCH(sgd_f32), stream, step, w, gradient, momentum, next, count,
         decay_share);
}
void sgd_step(Stream& stream, const SgdStep& step, const double* w, const double* gradient,
              double* momentum, double* next, std::int64_t count, const double* decay_share) {
  sgd_by(HWY_DYNAMIC_DISPATCH(sgd_f64), stream, step, w, gradient, momentum, next, count,
         decay_share);
}

void adam_step(Stream& stream, const AdamStep& step, const float* w, const float* gradient,
               float* m, float* v, float* next, std::int64_t count, const float* decay_share) {
  if (const auto* there = kernels_of(stream))
    return there->adam_step(stream, step, w, gradient, m, v, next, count, decay_share);
  adam_by(HWY_DYNAMIC_DISPATCH(adam_f32), stream, step, w, gradient, m, v, next, count,
          decay_share);
}
void adam_step(Stream& stream, const AdamStep& step, const double* w, const double* gradient,
               double* m, double* v, double* next, std::int64_t count, const double* decay_share) {
  adam_by(HWY_DYNAMIC_DISPATCH(adam_f64), stream, step, w, gradient, m, v, next, count,
          decay_share);
}

void squares_of_blocks(Stream& stream, std::span<const std::span<const float>> tensors,
                       double* sums) {
  if (const auto* there = kernels_of(stream))
    return there->squares_of_blocks(stream, tensors, sums);
  squares_of_blocks_by(HWY_DYNAMIC_DISPATCH(sum_of_squares_f32), stream, tensors, sums);
}
void squares_of_blocks(Stream& stream, std::span<const std::span<const double>> tensors,
                       double* sums) {
  squares_of_blocks_by(HWY_DYNAMIC_DISPATCH(sum_of_squares_f64), stream, tensors, sums);
}

double sum_of_blocks(double* sums, std::int64_t blocks) {
  for (std::int64_t width = 1; width < blocks; width *= 2)
    for (std::int64_t i = 0; i + width < blocks; i += 2 * width) sums[i] += sums[i + width];
  return blocks == 0 ? 0 : sums[0];
}

double sum_of_squares(Stream& stream, const float* x, std::int64_t count) {
  return sum_of_squares_of_all(stream, x, count);
}
double sum_of_squares(Stream& stream, const double* x, std::int64_t count) {
  return sum_of_squares_of_all(stream, x, count);
}

void accumulate(Stream& stream, float* a, const float* b, std::int64_t count) {
  if (const auto* there = kernels_of(stream)) return there->accumulate(stream, a, b, count);
  accumulate_by(HWY_DYNAMIC_DISPATCH(accumulate_f32), stream, a, b, count);
}
void accumulate(Stream& stream, double* a, const double* b, std::int64_t count) {
  accumulate_by(HWY_DYNAMIC_DISPATCH(accumulate_f64), stream, a, b, count);
}

bool all_finite(Stream& stream, const float* x, std::int64_t count) {
  if (const auto* there = kernels_of(stream)) return there->all_finite(stream, x, count);
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
