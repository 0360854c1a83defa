#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tile.cuh"
#include "kernels/pool_windows.h"

namespace troupe::kernels::cuda {
namespace {

/// A place in an image, of the number i of images of this size.
struct Pixel {
  std::int64_t image, y, x;

  __device__ Pixel(std::int64_t i, std::int64_t height, std::int64_t width)
      : image(i / (height * width)), y(i / width % height), x(i % width) {}
};

struct GreatestForward {
  PoolShape shape;
  const float* x;
  float* y;
  std::uint8_t* places;
  __device__ void operator()(std::int64_t i) const {
    const Pixel at(i, shape.out_height(), shape.out_width());
    const PoolGreatest found =
        greatest_of_window(shape, x + at.image * shape.height * shape.width, at.y, at.x);
    y[i] = found.number;
    places[i] = found.place;
  }
};

struct GreatestBackward {
  PoolShape shape;
  const float* dy;
  const std::uint8_t* places;
  float* dx;
  __device__ void operator()(std::int64_t i) const {
    const Pixel at(i, shape.height, shape.width);
    const std::int64_t first = at.image * shape.out_height() * shape.out_width();
    dx[i] = gradient_of_greatest(shape, dy + first, places + first, at.y, at.x);
  }
};

struct MeanForward {
  PoolShape shape;
  const float* x;
  float* y;
  __device__ void operator()(std::int64_t i) const {
    const Pixel at(i, shape.out_height(), shape.out_width());
    y[i] = mean_of_window(shape, x + at.image * shape.height * shape.width, at.y, at.x);
  }
};

struct MeanBackward {
  PoolShape shape;
  const float* dy;
  float* dx;
  __device__ void operator()(std::int64_t i) const {
    const Pixel at(i, shape.height, shape.width);
    dx[i] = gradient_of_means(shape, dy + at.image * shape.out_height() * shape.out_width(), at.y,
                              at.x);
  }
};

struct UpsampleForward {
  PoolShape shape;
  const float* x;
  float* y;
  __device__ void operator()(std::int64_t i) const {
    const Pixel at(i, shape.height, shape.width);
    y[i] =
        number_of_window(shape, x + at.image * shape.out_height() * shape.out_width(), at.y, at.x);
  }
};

struct UpsampleBackward {
  PoolShape shape;
  const float* dy;
  float* dx;
  __device__ void operator()(std::int64_t i) const {
    const Pixel at(i, shape.out_height(), shape.out_width());
    dx[i] = sum_of_window(shape, dy + at.image * shape.height * shape.width, at.y, at.x);
  }
};

std::int64_t pixels_of_all(const PoolShape& shape) {
  return shape.images * shape.height * shape.width;
}

}  // namespace

void max_pool_forward(Stream& stream, const PoolShape& shape, const float* x, float* y,
                      std::uint8_t* places) {
  for_elements(stream, shape.outputs(), GreatestForward{shape, x, y, places});
}
void max_pool_backward(Stream& stream, const PoolShape& shape, const float* dy,
                       const std::uint8_t* places, float* dx) {
  for_elements(stream, pixels_of_all(shape), GreatestBackward{shape, dy, places, dx});
}
void window_mean_forward(Stream& stream, const PoolShape& shape, const float* x, float* y) {
  for_elements(stream, shape.outputs(), MeanForward{shape, x, y});
}
void window_mean_backward(Stream& stream, const PoolShape& shape, const float* dy, float* dx) {
  for_elements(stream, pixels_of_all(shape), MeanBackward{shape, dy, dx});
}
void upsample_forward(Stream& stream, const PoolShape& shape, const float* x, float* y) {
  for_elements(stream, pixels_of_all(shape), UpsampleForward{shape, x, y});
}
void upsample_backward(Stream& stream, const PoolShape& shape, const float* dy, float* dx) {
  for_elements(stream, shape.outputs(), UpsampleBackward{shape, dy, dx});
}

}  // namespace troupe::kernels::cuda
