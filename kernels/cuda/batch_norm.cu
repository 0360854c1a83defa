#include "kernels/batch_norm.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

// Sums over the pixels of each channel, in doubles: sixteen threads sum an image, and then one
// thread sums the images of its channel.

template <int count, class Term>
struct SumImage {
  ImageShape shape;
  Term term;
  double* sums;  // [count, batch, channels]

  __device__ void operator()(std::int64_t image, bool is_image, unsigned lane) const {
    const std::int64_t channel = image % shape.channels, images = shape.batch * shape.channels;
    double of_lane[count] = {};
#pragma unroll 4
    for (std::int64_t i = lane; i < shape.pixels; i += lanes)
      term(image * shape.pixels + i, channel, of_lane);
    for (int which = 0; which < count; ++which) {
      const double sum = sum_of_lanes(of_lane[which]);
      if (is_image && lane == 0) sums[which * images + image] = sum;
    }
  }
};

template <int count, class Finish>
struct AddImages {
  ImageShape shape;
  const double* sums;
  Finish finish;

  __device__ void operator()(std::int64_t channel) const {
    const std::int64_t images = shape.batch * shape.channels;
    double totals[count] = {};
#pragma unroll 8
    for (std::int64_t image = channel; image < images; image += shape.channels)
      for (int which = 0; which < count; ++which) totals[which] += sums[which * images + image];
    finish(channel, totals);
  }
};

/// Sums terms per channel: term(i, channel, sums) adds a pixel's terms, finish(channel, totals)
/// receives the totals.
template <int count, class Term, class Finish>
void sum_channels(Stream& stream, const ImageShape& shape, const Term& term, const Finish& finish) {
  const std::int64_t images = shape.batch * shape.channels;
  Tensor made = stream.make({count, images}, DType::f64);
  for_rows(stream, images, SumImage<count, Term>{shape, term, made.data<double>()});
  for_elements(stream, shape.channels,
               AddImages<count, Finish>{shape, made.data<double>(), finish});
}

struct Pixel {
  const float* x;
  __device__ void operator()(std::int64_t i, std::int64_t, double (&sums)[1]) const {
    sums[0] += static_cast<double>(x[i]);
  }
};

struct Center {
  double count;
  double* centers;
  float* mean;
  __device__ void operator()(std::int64_t channel, const double (&totals)[1]) const {
    centers[channel] = totals[0] / count;
    mean[channel] = static_cast<float>(centers[channel]);
  }
};

struct SquaredDistance {
  const float* x;
  const double* centers;
  __device__ void operator()(std::int64_t i, std::int64_t channel, double (&sums)[1]) const {
    const double distance = static_cast<double>(x[i]) - centers[channel];
    sums[0] = fma(distance, distance, sums[0]);
  }
};

struct Spread {
  double count;
  float *rstd, *unbiased_variance;
  float eps;
  __device__ void operator()(std::int64_t channel, const double (&totals)[1]) const {
    rstd[channel] = static_cast<float>(inverse_root(totals[0] / count + static_cast<double>(eps)));
    unbiased_variance[channel] = count == 1 ? 0 : static_cast<float>(totals[0] / (count - 1));
  }
};

/// y = (x - mean) rstd weight + bias
struct Normalize {
  ImageShape shape;
  const float *x, *weight, *bias, *mean;
  const float* spread;  // rstd, or the variance from which it is computed.
  bool is_variance;
  float eps;
  float* y;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t channel = i / shape.pixels % shape.channels;
    const float rstd = is_variance ? inverse_root(spread[channel] + eps) : spread[channel];
    y[i] = fmaf(x[i] - mean[channel], rstd * weight[channel], bias[channel]);
  }
};

/// A term of sum_channels(): dy, and dy times the normalized input.
struct Gradient {
  const float *x, *mean, *rstd, *dy;

  __device__ void operator()(std::int64_t i, std::int64_t channel, double (&sums)[2]) const {
    const double center = mean[channel], scale = rstd[channel];
    const double normal = (static_cast<double>(x[i]) - center) * scale, gradient = dy[i];
    sums[0] += gradient;
    sums[1] = fma(gradient, normal, sums[1]);
  }
};

/// The two totals of each channel, stored as a pair.
struct KeepPair {
  double* pairs;
  __device__ void operator()(std::int64_t channel, const double (&totals)[2]) const {
    pairs[2 * channel] = totals[0];
    pairs[2 * channel + 1] = totals[1];
  }
};

Tensor gradient_sums(Stream& stream, const ImageShape& shape, const float* x, const float* mean,
                     const float* rstd, const float* dy) {
  Tensor sums = stream.make({2 * shape.channels}, DType::f64);
  sum_channels<2>(stream, shape, Gradient{x, mean, rstd, dy}, KeepPair{sums.data<double>()});
  return sums;
}

// dx = rstd weight (dy - mean(dy) - n mean(dy n)), with n the normalized input.
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
  const double count = static_cast<double>(shape.batch * shape.pixels);
  Tensor centers = stream.make({shape.channels}, DType::f64);
  sum_channels<1>(stream, shape, Pixel{x}, Center{count, centers.data<double>(), mean});
  sum_channels<1>(stream, shape, SquaredDistance{x, centers.data<double>()},
                  Spread{count, rstd, unbiased_variance, eps});
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
  const Tensor sums = gradient_sums(stream, shape, x, mean, rstd, dy);
  for_elements(stream, numbers_of(shape),
               BackwardInput{shape, x, weight, mean, rstd, dy, sums.data<double>(), dx});
}
void batch_norm_backward_weight(Stream& stream, const ImageShape& shape, const float* x,
                                const float* mean, const float* rstd, const float* dy,
                                float* dweight, float* dbias) {
  const Tensor sums = gradient_sums(stream, shape, x, mean, rstd, dy);
  for_elements(stream, shape.channels, BackwardWeight{sums.data<double>(), dweight, dbias});
}
void average_pool_forward(Stream& stream, const ImageShape& shape, const float* x, float* y) {
  for_rows(stream, shape.batch * shape.channels, PoolForward{x, y, shape.pixels});
}
void average_pool_backward(Stream& stream, const ImageShape& shape, const float* dy, float* dx) {
  for_elements(stream, numbers_of(shape), PoolBackward{dy, dx, shape.pixels});
}

}  // namespace troupe::kernels::cuda
