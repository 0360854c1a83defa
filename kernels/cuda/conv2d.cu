#include "kernels/conv2d.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tile.cuh"

// Each sum is one chain, in the order of kernels/cpu/conv2d.cpp.
namespace troupe::kernels::cuda {
namespace {

__device__ std::int64_t group_in_channels(const Conv2dShape& s) { return s.in_channels / s.groups; }
__device__ std::int64_t group_out_channels(const Conv2dShape& s) {
  return s.out_channels / s.groups;
}

/// The pixel that the tap (row, column) of an output pixel reads, if it is on the image.
struct Reading {
  Conv2dShape shape;
  __device__ bool is_inside(std::int64_t y, std::int64_t x) const {
    return y >= 0 && y < shape.height && x >= 0 && x < shape.width;
  }
  __device__ std::int64_t row(std::int64_t out_y, std::int64_t tap) const {
    return out_y * shape.stride + tap - shape.padding;
  }
};

struct Forward {
  Conv2dShape shape;
  const float *x, *w;
  float* y;

  __device__ void operator()(std::int64_t i) const {
    const Reading reading{shape};
    const std::int64_t out_width = shape.out_width(), out_height = shape.out_height();
    const std::int64_t column = i % out_width, row = i / out_width % out_height;
    const std::int64_t out = i / (out_width * out_height) % shape.out_channels;
    const std::int64_t image = i / (out_width * out_height * shape.out_channels);
    const std::int64_t channels = group_in_channels(shape);
    const std::int64_t first = out / group_out_channels(shape) * channels;
    const float* weight = w + out * channels * shape.kernel * shape.kernel;
    float sum = 0;
    for (std::int64_t channel = first; channel < first + channels; ++channel) {
      const float* plane = x + (image * shape.in_channels + channel) * shape.height * shape.width;
      for (std::int64_t ky = 0; ky < shape.kernel; ++ky)
        for (std::int64_t kx = 0; kx < shape.kernel; ++kx, ++weight) {
          const std::int64_t from_y = reading.row(row, ky), from_x = reading.row(column, kx);
          const bool inside = reading.is_inside(from_y, from_x);
          sum = fmaf(*weight, inside ? plane[from_y * shape.width + from_x] : 0.0f, sum);
        }
    }
    y[i] = sum;
  }
};

/// The sum of the taps that read a pixel, in order. Each tap is a chain over the channels.
struct BackwardInput {
  Conv2dShape shape;
  const float *w, *dy;
  float* dx;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t x = i % shape.width, y = i / shape.width % shape.height;
    const std::int64_t channel = i / (shape.width * shape.height) % shape.in_channels;
    const std::int64_t image = i / (shape.width * shape.height * shape.in_channels);
    const std::int64_t out_width = shape.out_width(), out_height = shape.out_height();
    const std::int64_t taps = shape.kernel * shape.kernel, pixels = out_width * out_height;
    const std::int64_t channels = group_in_channels(shape), outs = group_out_channels(shape);
    const std::int64_t first = channel / channels * outs, in_group = channel % channels;
    float sum = 0;
    for (std::int64_t ky = 0; ky < shape.kernel; ++ky)
      for (std::int64_t kx = 0; kx < shape.kernel; ++kx) {
        const std::int64_t from_y = y + shape.padding - ky, from_x = x + shape.padding - kx;
        if (from_y < 0 || from_x < 0 || from_y % shape.stride != 0 || from_x % shape.stride != 0)
          continue;
        const std::int64_t row = from_y / shape.stride, column = from_x / shape.stride;
        if (row >= out_height || column >= out_width) continue;
        float tap = 0;
        for (std::int64_t out = first; out < first + outs; ++out)
          tap =
              fmaf(w[(out * channels + in_group) * taps + ky * shape.kernel + kx],
                   dy[(image * shape.out_channels + out) * pixels + row * out_width + column], tap);
        sum += tap;
      }
    dx[i] = sum;
  }
};

/// The gradient of a weight, summed sample by sample and pixel by pixel.
struct BackwardWeight {
  Conv2dShape shape;
  const float *x, *dy;
  float* dw;

  __device__ void operator()(std::int64_t i) const {
    const Reading reading{shape};
    const std::int64_t kx = i % shape.kernel, ky = i / shape.kernel % shape.kernel;
    const std::int64_t channels = group_in_channels(shape);
    const std::int64_t out = i / (shape.kernel * shape.kernel * channels);
    const std::int64_t channel =
        i / (shape.kernel * shape.kernel) % channels + out / group_out_channels(shape) * channels;
    const std::int64_t out_width = shape.out_width(), out_height = shape.out_height();
    float sum = dw[i];
    for (std::int64_t image = 0; image < shape.batch; ++image) {
      const float* plane = x + (image * shape.in_channels + channel) * shape.height * shape.width;
      const float* gradient = dy + (image * shape.out_channels + out) * out_height * out_width;
      for (std::int64_t row = 0; row < out_height; ++row)
        for (std::int64_t column = 0; column < out_width; ++column, ++gradient) {
          const std::int64_t from_y = reading.row(row, ky), from_x = reading.row(column, kx);
          const bool inside = reading.is_inside(from_y, from_x);
          sum = fmaf(inside ? plane[from_y * shape.width + from_x] : 0.0f, *gradient, sum);
        }
    }
    dw[i] = sum;
  }
};

}  // namespace

void conv2d_forward(Stream& stream, const Conv2dShape& shape, const float* x, const float* w,
                    float* y) {
  for_elements(stream, shape.batch * shape.out_channels * shape.out_height() * shape.out_width(),
               Forward{shape, x, w, y});
}
void conv2d_backward_input(Stream& stream, const Conv2dShape& shape, const float* w,
                           const float* dy, float* dx) {
  for_elements(stream, shape.batch * shape.in_channels * shape.height * shape.width,
               BackwardInput{shape, w, dy, dx});
}
void conv2d_backward_weight(Stream& stream, const Conv2dShape& shape, const float* x,
                            const float* dy, float* dw) {
  for_elements(stream, shape.weights(), BackwardWeight{shape, x, dy, dw});
}

}  // namespace troupe::kernels::cuda
