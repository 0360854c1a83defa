#pragma once

#include <cstdint>

#include "core/memory/stream.h"

namespace troupe::kernels {

/// Square windows over images [images, height, width], where each channel of a sample is an image.
/// `padding` pixels surround each image, at most half a window, so that each window has a pixel of
/// the image.
struct PoolShape {
  std::int64_t images = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t kernel = 1;  // At most 16, so that a byte holds a place in a window.
  std::int64_t stride = 1;
  std::int64_t padding = 0;

  constexpr std::int64_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  constexpr std::int64_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  constexpr std::int64_t outputs() const { return images * out_height() * out_width(); }
};

/// y = the greatest number of each window, [images, out_height, out_width]; a NaN counts as greater
/// than all numbers. `places` has a byte for each output: where in its window the first of the
/// greatest lies, counted row by row.
void max_pool_forward(Stream& stream, const PoolShape& shape, const float* x, float* y,
                      std::uint8_t* places);
/// dx = the sum of the gradients of the windows whose greatest number x is, in the order of the
/// windows. Overwrites dx.
void max_pool_backward(Stream& stream, const PoolShape& shape, const float* dy,
                       const std::uint8_t* places, float* dx);

/// y = the mean of each window, where padding counts as zeros. Sums go row by row.
void window_mean_forward(Stream& stream, const PoolShape& shape, const float* x, float* y);
/// Overwrites dx. Sums go in the order of the windows.
void window_mean_backward(Stream& stream, const PoolShape& shape, const float* dy, float* dx);

/// Enlarges images by a whole factor. `shape` has the large images y, and windows of `kernel` =
/// `stride` = the factor without padding. Each pixel of y gets the number of its window, which is
/// a pixel of x, [images, out_height, out_width]. height and width are multiples of the factor.
void upsample_forward(Stream& stream, const PoolShape& shape, const float* x, float* y);
/// dx = the sum of each window of dy, row by row. Overwrites dx.
void upsample_backward(Stream& stream, const PoolShape& shape, const float* dy, float* dx);

}  // namespace troupe::kernels
