#include "kernels/batch_norm.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/parts/pieces.h"
#include "kernels/cpu/parts/targets.h"
#include "kernels/device_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/batch_norm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/math-inl.h"
#include "kernels/cpu/parts/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

using V = FloatVector;
using W = DoubleVector;

HWY_INLINE V constant(float value) { return hn::Set(Floats(), value); }

/// Calls body(start) with the offset of the channel's pixels in each image of the batch.
template <class Body>
HWY_INLINE void each_image(const ImageShape& shape, std::int64_t channel, Body body) {
  for (std::int64_t b = 0; b < shape.batch; ++b)
    body((b * shape.channels + channel) * shape.pixels);
}

/// y = (x - mean) rstd weight + bias
HWY_INLINE void normalize(const ImageShape& shape, std::int64_t channel, const float* x, float mean,
                          float rstd, float weight, float bias, float* y) {
  const V center = constant(mean), scale = constant(rstd * weight), shift = constant(bias);
  each_image(shape, channel, [=, &shape](std::int64_t start) HWY_ATTR {
    each_vector(shape.pixels, [=](auto at, std::int64_t i) HWY_ATTR {
      at.store(fused(hn::Sub(at.load(x + start + i), center), scale, shift), y + start + i);
    });
  });
}

/// Returns sums over the pixels of a channel: in lanes within each image, then image by image.
/// Calls body(at, i, sums) for each vector of pixels; it begins at i.
template <int count, class Body>
HWY_INLINE std::array<double, count> sums_of(const ImageShape& shape, std::int64_t channel,
                                             Body body) {
  std::array<double, count> totals = {};
  each_image(shape, channel, [&, body](std::int64_t start) HWY_ATTR {
    Lanes<Doubles, count> lanes(0);
    lanes.walk(shape.pixels, [=](auto at, std::int64_t i, W(&sums)[count])
                                 HWY_ATTR { body(at, start + i, sums); });
    for (int which = 0; which < count; ++which) totals[which] += lanes.sum(which);
  });
  return totals;
}

struct Moments {
  double mean;
  double squared_distances;  // The sum of (x - mean)^2.
};

HWY_INLINE Moments moments(const ImageShape& shape, std::int64_t channel, const float* x) {
  const auto [total] = sums_of<1>(shape, channel,
                                  [x](auto at, std::int64_t i, W(&sum)[1])
                                      HWY_ATTR { sum[0] = hn::Add(sum[0], at.load(x + i)); });
  const double mean = total / static_cast<double>(shape.batch * shape.pixels);
  const W center = hn::Set(Doubles(), mean);
  const auto [squares] =
      sums_of<1>(shape, channel, [x, center](auto at, std::int64_t i, W(&sum)[1]) HWY_ATTR {
        const W distance = at.or_zero(hn::Sub(at.load(x + i), center));
        sum[0] = fused(distance, distance, sum[0]);
      });
  return {mean, squares};
}

/// The sums of dy, and of dy times the normalized input.
struct GradientSums {
  double dy;
  double dy_normal;
};

HWY_INLINE GradientSums gradient_sums(const ImageShape& shape, std::int64_t channel, const float* x,
                                      float mean, float rstd, const float* dy) {
  const W center = hn::Set(Doubles(), mean), scale = hn::Set(Doubles(), rstd);
  const auto [sum, sum_normal] =
      sums_of<2>(shape, channel, [=](auto at, std::int64_t i, W(&sums)[2]) HWY_ATTR {
        const W normal = hn::Mul(hn::Sub(at.load(x + i), center), scale);
        const W gradient = at.load(dy + i);
        sums[0] = hn::Add(sums[0], gradient);
        sums[1] = fused(gradient, normal, sums[1]);
      });
  return {sum, sum_normal};
}

void forward_channel(const ImageShape& shape, std::int64_t channel, const float* x,
                     const float* weight, const float* bias, float* y, float* mean, float* rstd,
                     float* unbiased_variance, float eps) {
  const auto [center, squares] = moments(shape, channel, x);
  const std::int64_t count = shape.batch * shape.pixels;
  mean[channel] = static_cast<float>(center);
  rstd[channel] = static_cast<float>(inverse_root(squares / static_cast<double>(count) + eps));
  unbiased_variance[channel] =
      count == 1 ? 0 : static_cast<float>(squares / static_cast<double>(count - 1));
  normalize(shape, channel, x, mean[channel], rstd[channel], weight[channel], bias[channel], y);
}

void apply_channel(const ImageShape& shape, std::int64_t channel, const float* x,
                   const float* weight, const float* bias, const float* mean, const float* variance,
                   float* y, float eps) {
  const float rstd = inverse_root(variance[channel] + eps);
  normalize(shape, channel, x, mean[channel], rstd, weight[channel], bias[channel], y);
}

// dx = rstd weight (dy - mean(dy) - n mean(dy n)), with n the normalized input.
void backward_input_channel(const ImageShape& shape, std::int64_t channel, const float* x,
                            const float* weight, const float* mean, const float* rstd,
                            const float* dy, float* dx) {
  const auto sums = gradient_sums(shape, channel, x, mean[channel], rstd[channel], dy);
  const double count = static_cast<double>(shape.batch * shape.pixels);
  const V mean_dy = constant(static_cast<float>(sums.dy / count));
  const V minus_mean_dy_normal = constant(static_cast<float>(-sums.dy_normal / count));
  const V center = constant(mean[channel]), scale = constant(rstd[channel]);
  const V factor = constant(rstd[channel] * weight[channel]);
  each_image(shape, channel, [=, &shape](std::int64_t start) HWY_ATTR {
    each_vector(shape.pixels, [=](auto at, std::int64_t i) HWY_ATTR {
      const V normal = hn::Mul(hn::Sub(at.load(x + start + i), center), scale);
      const V gradient = hn::Sub(at.load(dy + start + i), mean_dy);
      at.store(hn::Mul(factor, fused(normal, minus_mean_dy_normal, gradient)), dx + start + i);
    });
  });
}

void backward_weight_channel(const ImageShape& shape, std::int64_t channel, const float* x,
                             const float* mean, const float* rstd, const float* dy, float* dweight,
                             float* dbias) {
  const auto sums = gradient_sums(shape, channel, x, mean[channel], rstd[channel], dy);
  dweight[channel] += static_cast<float>(sums.dy_normal);
  dbias[channel] += static_cast<float>(sums.dy);
}

float mean_of(const float* x, std::int64_t count) {
  Lanes<Doubles, 1> lanes(0);
  lanes.walk(count, [=](auto at, std::int64_t i, W(&sum)[1])
                        HWY_ATTR { sum[0] = hn::Add(sum[0], at.load(x + i)); });
  return static_cast<float>(lanes.sum() / static_cast<double>(count));
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels {

using namespace cpu;

HWY_EXPORT(forward_channel);
HWY_EXPORT(apply_channel);
HWY_EXPORT(backward_input_channel);
HWY_EXPORT(backward_weight_channel);
HWY_EXPORT(mean_of);

void batch_norm_forward(Stream& stream, const ImageShape& shape, const float* x,
                        const float* weight, const float* bias, float* y, float* mean, float* rstd,
                        float* unbiased_variance, float eps) {
  if (const auto* there = kernels_of(stream))
    return there->batch_norm_forward(stream, shape, x, weight, bias, y, mean, rstd,
                                     unbiased_variance, eps);
  stream.for_each(shape.channels, [=, &shape](std::int64_t channel) {
    HWY_DYNAMIC_DISPATCH(forward_channel)
    (shape, channel, x, weight, bias, y, mean, rstd, unbiased_variance, eps);
  });
}

void batch_norm_apply(Stream& stream, const ImageShape& shape, const float* x, const float* weight,
                      const float* bias, const float* mean, const float* variance, float* y,
                      float eps) {
  if (const auto* there = kernels_of(stream))
    return there->batch_norm_apply(stream, shape, x, weight, bias, mean, variance, y, eps);
  stream.for_each(shape.channels, [=, &shape](std::int64_t channel) {
    HWY_DYNAMIC_DISPATCH(apply_channel)
    (shape, channel, x, weight, bias, mean, variance, y, eps);
  });
}

void batch_norm_backward_input(Stream& stream, const ImageShape& shape, const float* x,
                               const float* weight, const float* mean, const float* rstd,
                               const float* dy, float* dx) {
  if (const auto* there = kernels_of(stream))
    return there->batch_norm_backward_input(stream, shape, x, weight, mean, rstd, dy, dx);
  stream.for_each(shape.channels, [=, &shape](std::int64_t channel) {
    HWY_DYNAMIC_DISPATCH(backward_input_channel)
    (shape, channel, x, weight, mean, rstd, dy, dx);
  });
}

void batch_norm_backward_weight(Stream& stream, const ImageShape& shape, const float* x,
                                const float* mean, const float* rstd, const float* dy,
                                float* dweight, float* dbias) {
  if (const auto* there = kernels_of(stream))
    return there->batch_norm_backward_weight(stream, shape, x, mean, rstd, dy, dweight, dbias);
  stream.for_each(shape.channels, [=, &shape](std::int64_t channel) {
    HWY_DYNAMIC_DISPATCH(backward_weight_channel)
    (shape, channel, x, mean, rstd, dy, dweight, dbias);
  });
}

void average_pool_forward(Stream& stream, const ImageShape& shape, const float* x, float* y) {
  if (const auto* there = kernels_of(stream))
    return there->average_pool_forward(stream, shape, x, y);
  for_rows(stream, shape.batch * shape.channels, shape.pixels, [=, &shape](std::int64_t r) {
    y[r] = HWY_DYNAMIC_DISPATCH(mean_of)(x + r * shape.pixels, shape.pixels);
  });
}

void average_pool_backward(Stream& stream, const ImageShape& shape, const float* dy, float* dx) {
  if (const auto* there = kernels_of(stream))
    return there->average_pool_backward(stream, shape, dy, dx);
  for_rows(stream, shape.batch * shape.channels, shape.pixels, [=, &shape](std::int64_t r) {
    std::fill_n(dx + r * shape.pixels, shape.pixels, dy[r] / static_cast<float>(shape.pixels));
  });
}

}  // namespace troupe::kernels

#endif
