#pragma once

#include <cstdint>

#include "kernels/pool.h"

/// The numbers of pools, computed by the same code on the cores and on GPUs.
namespace troupe::kernels {

/// Positions [begin, end) along one side of an image.
struct PoolRange {
  std::int64_t begin;
  std::int64_t end;
};

/// Returns the pixels of window `o` along a side of `size` pixels, without the padding.
constexpr PoolRange pixels_of(const PoolShape& shape, std::int64_t o, std::int64_t size) {
  const std::int64_t begin = o * shape.stride - shape.padding, end = begin + shape.kernel;
  return {begin < 0 ? 0 : begin, end > size ? size : end};
}

/// Returns the windows that pixel `i` along a side belongs to. There are `count` windows.
constexpr PoolRange windows_with(const PoolShape& shape, std::int64_t i, std::int64_t count) {
  const std::int64_t at = i + shape.padding, end = at / shape.stride + 1;
  const std::int64_t begin = at < shape.kernel ? 0 : (at - shape.kernel) / shape.stride + 1;
  return {begin, end > count ? count : end};
}

struct PoolGreatest {
  float number;
  std::uint8_t place;
};

constexpr PoolGreatest greatest_of_window(const PoolShape& shape, const float* image,
                                          std::int64_t oy, std::int64_t ox) {
  const PoolRange rows = pixels_of(shape, oy, shape.height);
  const PoolRange columns = pixels_of(shape, ox, shape.width);
  const std::int64_t top = oy * shape.stride - shape.padding;
  const std::int64_t left = ox * shape.stride - shape.padding;
  float most = image[rows.begin * shape.width + columns.begin];
  std::int64_t place = (rows.begin - top) * shape.kernel + columns.begin - left;
  for (std::int64_t y = rows.begin; y < rows.end; ++y)
    for (std::int64_t x = columns.begin; x < columns.end; ++x) {
      const float number = image[y * shape.width + x];
      // A number that differs from itself is a NaN.
      if (number > most || (number != number && most == most)) {
        most = number;
        place = (y - top) * shape.kernel + x - left;
      }
    }
  return {most, static_cast<std::uint8_t>(place)};
}

/// Returns the sum of a window, row by row.
constexpr float sum_of_window(const PoolShape& shape, const float* image, std::int64_t oy,
                              std::int64_t ox) {
  const PoolRange rows = pixels_of(shape, oy, shape.height);
  const PoolRange columns = pixels_of(shape, ox, shape.width);
  float sum = 0;
  for (std::int64_t y = rows.begin; y < rows.end; ++y)
    for (std::int64_t x = columns.begin; x < columns.end; ++x) sum += image[y * shape.width + x];
  return sum;
}

constexpr float mean_of_window(const PoolShape& shape, const float* image, std::int64_t oy,
                               std::int64_t ox) {
  return sum_of_window(shape, image, oy, ox) / static_cast<float>(shape.kernel * shape.kernel);
}

/// Returns the gradient of pixel (y, x) from those of an image's windows.
constexpr float gradient_of_greatest(const PoolShape& shape, const float* dy,
                                     const std::uint8_t* places, std::int64_t y, std::int64_t x) {
  const PoolRange rows = windows_with(shape, y, shape.out_height());
  const PoolRange columns = windows_with(shape, x, shape.out_width());
  float sum = 0;
  for (std::int64_t oy = rows.begin; oy < rows.end; ++oy)
    for (std::int64_t ox = columns.begin; ox < columns.end; ++ox) {
      const std::int64_t place = (y - oy * shape.stride + shape.padding) * shape.kernel + x -
                                 ox * shape.stride + shape.padding;
      const std::int64_t window = oy * shape.out_width() + ox;
      if (places[window] == place) sum += dy[window];
    }
  return sum;
}

constexpr float gradient_of_means(const PoolShape& shape, const float* dy, std::int64_t y,
                                  std::int64_t x) {
  const PoolRange rows = windows_with(shape, y, shape.out_height());
  const PoolRange columns = windows_with(shape, x, shape.out_width());
  float sum = 0;
  for (std::int64_t oy = rows.begin; oy < rows.end; ++oy)
    for (std::int64_t ox = columns.begin; ox < columns.end; ++ox)
      sum += dy[oy * shape.out_width() + ox];
  return sum / static_cast<float>(shape.kernel * shape.kernel);
}

/// Returns the number of the window that pixel (y, x) lies in. Windows do not overlap.
constexpr float number_of_window(const PoolShape& shape, const float* numbers, std::int64_t y,
                                 std::int64_t x) {
  return numbers[y / shape.stride * shape.out_width() + x / shape.stride];
}

}  // namespace troupe::kernels
