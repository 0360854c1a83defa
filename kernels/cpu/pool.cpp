#include "kernels/pool.h"

#include "kernels/device_kernels.h"
#include "kernels/pool_windows.h"

namespace troupe::kernels {
namespace {

/// Calls body(image, y, x, i) for each place of each image, where i counts all places in order.
template <class Body>
void for_each_place(Stream& stream, std::int64_t images, std::int64_t height, std::int64_t width,
                    Body body) {
  stream.for_each(images, [=](std::int64_t image) {
    std::int64_t i = image * height * width;
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x) body(image, y, x, i++);
  });
}

}  // namespace

void max_pool_forward(Stream& stream, const PoolShape& shape, const float* x, float* y,
                      std::uint8_t* places) {
  if (const auto* there = kernels_of(stream))
    return there->max_pool_forward(stream, shape, x, y, places);
  for_each_place(stream, shape.images, shape.out_height(), shape.out_width(),
                 [=](std::int64_t image, std::int64_t oy, std::int64_t ox, std::int64_t i) {
                   const auto found =
                       greatest_of_window(shape, x + image * shape.height * shape.width, oy, ox);
                   y[i] = found.number;
                   places[i] = found.place;
                 });
}

void max_pool_backward(Stream& stream, const PoolShape& shape, const float* dy,
                       const std::uint8_t* places, float* dx) {
  if (const auto* there = kernels_of(stream))
    return there->max_pool_backward(stream, shape, dy, places, dx);
  const std::int64_t outputs = shape.out_height() * shape.out_width();
  for_each_place(stream, shape.images, shape.height, shape.width,
                 [=](std::int64_t image, std::int64_t iy, std::int64_t ix, std::int64_t i) {
                   dx[i] = gradient_of_greatest(shape, dy + image * outputs,
                                                places + image * outputs, iy, ix);
                 });
}

void window_mean_forward(Stream& stream, const PoolShape& shape, const float* x, float* y) {
  if (const auto* there = kernels_of(stream))
    return there->window_mean_forward(stream, shape, x, y);
  for_each_place(stream, shape.images, shape.out_height(), shape.out_width(),
                 [=](std::int64_t image, std::int64_t oy, std::int64_t ox, std::int64_t i) {
                   y[i] = mean_of_window(shape, x + image * shape.height * shape.width, oy, ox);
                 });
}

void window_mean_backward(Stream& stream, const PoolShape& shape, const float* dy, float* dx) {
  if (const auto* there = kernels_of(stream))
    return there->window_mean_backward(stream, shape, dy, dx);
  const std::int64_t outputs = shape.out_height() * shape.out_width();
  for_each_place(stream, shape.images, shape.height, shape.width,
                 [=](std::int64_t image, std::int64_t iy, std::int64_t ix, std::int64_t i) {
                   dx[i] = gradient_of_means(shape, dy + image * outputs, iy, ix);
                 });
}

void upsample_forward(Stream& stream, const PoolShape& shape, const float* x, float* y) {
  if (const auto* there = kernels_of(stream)) return there->upsample_forward(stream, shape, x, y);
  const std::int64_t inputs = shape.out_height() * shape.out_width();
  for_each_place(stream, shape.images, shape.height, shape.width,
                 [=](std::int64_t image, std::int64_t iy, std::int64_t ix, std::int64_t i) {
                   y[i] = number_of_window(shape, x + image * inputs, iy, ix);
                 });
}

void upsample_backward(Stream& stream, const PoolShape& shape, const float* dy, float* dx) {
  if (const auto* there = kernels_of(stream))
    return there->upsample_backward(stream, shape, dy, dx);
  for_each_place(stream, shape.images, shape.out_height(), shape.out_width(),
                 [=](std::int64_t image, std::int64_t oy, std::int64_t ox, std::int64_t i) {
                   dx[i] = sum_of_window(shape, dy + image * shape.height * shape.width, oy, ox);
                 });
}

}  // namespace troupe::kernels
