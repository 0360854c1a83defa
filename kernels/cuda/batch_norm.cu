#include "kernels/batch_norm.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

/// Calls body(i) with a lane's pixels of a channel, image by image: each image begins at lane 0.
template <class Body>
__device__ void each_pixel(const ImageShape& shape, std::int64_t channel, unsigned lane,
                           Body body) {
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    const std::int64_t start = (b * shape.channels + channel) * shape.pixels;
    for (std::int64_t i = lane; i < shape.pixels; i += lanes) body(start + i);
  }
}

struct Statistics {
  ImageShape shape;
  const float* x;
  float *mean, *rstd, *unbiased_variance;
  float eps;

  __device__ void operator()(std::int64_t channel, bool is_channel, unsigned lane) const {
    const std::int64_t count = shape.batch * shape.pixels;
    double total = 0, squares = 0;
    each_pixel(shape, channel, lane, [&](std::int64_t i) { total += static_cast<double>(x[i]); });
    const double center = sum_of_lanes(total) / static_cast<double>(count);
    each_pixel(shape, channel, lane, [&](std::int64_t i) {
      const double distance = static_cast<double>(x[i]) - center;
      squares = fma(distance, distance, squares);
    });
    squares = sum_of_lanes(squares);
    if (!is_channel || lane != 0) return;
    mean[channel] = static_cast<float>(center);
    rstd[channel] = static_cast<float>(
        inverse_root(squares / static_cast<double>(count) + static_cast<double>(eps)));
    unbiased_variance[channel] =
        count == 1 ? 0 : static_cast<float>(squares / static_cast<double>(count - 1));
  }
};

/// y = (x - mean) rstd weight + bias
struct Normalize {
  ImageShape shape;
  const float *x, *weight, *bias, *mean;
  const float* spread;  // rstd, or the variance that makes it.
  bool is_variance;
  float eps;
  float* y;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t channel = i / shape.pixels % shape.channels;
    const float rstd = is_variance ? inverse_root(spread[channel] + eps) : spread[channel];
    y[i] = fmaf(x[i] - mean[channel], rstd * weight[channel], bias[channel]);
  }
};

/// Sums of dy and of dy times the normalized input: a pair for each channel.
struct GradientSums {
  ImageShape shape;
  const float *x, *mean, *rstd, *dy;
  double* sums;

  __device__ void operator()(std::int64_t channel, bool is_channel, unsigned lane) const {
    const double center = mean[channel], scale = rstd[channel];
    double sum = 0, sum_normal = 0;
    each_pixel(shape, channel, lane, [&](std::int64_t i) {
      const double normal = (static_cast<double>(x[i]) - center) * scale, gradient = dy[i];
      sum += gradient;
      sum_normal = fma(gradient, normal, sum_normal);
    });
    sum = sum_of_lanes(sum);
    sum_normal = sum_of_lanes(sum_normal);
    if (!is_channel || lane != 0) return;
    sums[2 * channel] = sum;
    sums[2 * channel + 1] = sum_normal;
  }
};

Tensor sums_of(Stream& stream, const ImageShape& shape, const float* x, const float* mean,
               const float* rstd, const float* dy) {
  Tensor sums = stream.make({2 * shape.channels}, DType::f64);
  for_rows(stream, shape.channels, GradientSums{shape, x, mean, rstd, dy, sums.data<double>()});
  return sums;
}

// With n the normalized input: dx = rstd weight (dy - mean(dy) - n mean(dy n)).
struct BackwardInput {
  ImageShape shape;
  const float *x, *weight, *mean, *rstd, *dy;
  const double* sums;
  float* dx;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t channel = i / shape.pixels % shape.channels;
    const double count = static_cast<double>(shape.batch * shape.pixels);
    const float mean_dy = static_cast<float>(sums[2 * channel] / count);
    const float minus_mean_dy_normal = static_cast<float>(-sums[2 * channel + 1] / count);
    const float normal = (x[i] - mean[channel]) * rstd[channel];
    dx[i] = rstd[channel] * weight[channel] * fmaf(normal, minus_mean_dy_normal, dy[i] - mean_dy);
  }
};

struct BackwardWeight {
  const double* sums;
  float *dweight, *dbias;
  __device__ void operator()(std::int64_t channel) const {
    dweight[channel] += static_cast<float>(sums[2 * channel + 1]);
    dbias[channel] += static_cast<float>(sums[2 * channel]);
  }
};

struct PoolForward {
  const float* x;
  float* y;
  std::int64_t pixels;
  __device__ void operator()(std::int64_t row, bool is_row, unsigned lane) const {
    double sum = 0;
    for (std::int64_t i = lane; i < pixels; i += lanes)
      sum += static_cast<double>(x[row * pixels + i]);
    sum = sum_of_lanes(sum);
    if (is_row && lane == 0) y[row] = static_cast<float>(sum / static_cast<double>(pixels));
  }
};

struct PoolBackward {
  const float* dy;
  float* dx;
  std::int64_t pixels;
  __device__ void operator()(std::int64_t i) const {
    dx[i] = dy[i / pixels] / static_cast<float>(pixels);
  }
};

std::int64_t numbers_of(const ImageShape& shape) {
  return shape.batch * shape.channels * shape.pixels;
}

}  // namespace

void batch_norm_forward(Stream& stream, const ImageShape& shape, const float* x,
                        const float* weight, const float* bias, float* y, float* mean, float* rstd,
                        float* unbiased_variance, float eps) {
  for_rows(stream, shape.channels, Statistics{shape, x, mean, rstd, unbiased_variance, eps});
  for_elements(stream, numbers_of(shape),
               Normalize{shape, x, weight, bias, mean, rstd, false, eps, y});
}
void batch_norm_apply(Stream& stream, const ImageShape& shape, const float* x, const float* weight,
                      const float* bias, const float* mean, const float* variance, float* y,
                      float eps) {
  for_elements(stream, numbers_of(shape),
               Normalize{shape, x, weight, bias, mean, variance, true, eps, y});
}
void batch_norm_backward_input(Stream& stream, const ImageShape& shape, const float* x,
                               const float* weight, const float* mean, const float* rstd,
                               const float* dy, float* dx) {
  const Tensor sums = sums_of(stream, shape, x, mean, rstd, dy);
  for_elements(stream, numbers_of(shape),
               BackwardInput{shape, x, weight, mean, rstd, dy, sums.data<double>(), dx});
}
void batch_norm_backward_weight(Stream& stream, const ImageShape& shape, const float* x,
                                const float* mean, const float* rstd, const float* dy,
                                float* dweight, float* dbias) {
  const Tensor sums = sums_of(stream, shape, x, mean, rstd, dy);
  for_elements(stream, shape.channels, BackwardWeight{sums.data<double>(), dweight, dbias});
}
void average_pool_forward(Stream& stream, const ImageShape& shape, const float* x, float* y) {
  for_rows(stream, shape.batch * shape.channels, PoolForward{x, y, shape.pixels});
}
void average_pool_backward(Stream& stream, const ImageShape& shape, const float* dy, float* dx) {
  for_elements(stream, numbers_of(shape), PoolBackward{dy, dx, shape.pixels});
}

}  // namespace troupe::kernels::cuda
