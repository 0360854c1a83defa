#include "kernels/conv2d.h"

#include <algorithm>

#include "kernels/cpu/parts/planes.h"
#include "kernels/cpu/parts/product.h"
#include "kernels/cpu/parts/scratch.h"
#include "kernels/device_kernels.h"

namespace troupe::kernels {
namespace {

using cpu::Matrix;
using cpu::Order;
using cpu::panel_columns;
using cpu::Panels;
using cpu::PlaneShape;
using cpu::Product;
using cpu::Scratch;
using cpu::TapRows;

// The data that one product reads from an image must stay in the second-level cache.
constexpr std::int64_t most_floats = 98304;

/// The sizes of a convolution as matrix products.
struct Sizes {
  std::int64_t taps, pixels, in_image, out_image;

  explicit Sizes(const Conv2dShape& s)
      : taps(s.in_channels * s.kernel * s.kernel),
        pixels(s.out_height() * s.out_width()),
        in_image(s.in_channels * s.height * s.width),
        out_image(s.out_channels * pixels) {}
};

std::int64_t pieces_of(std::int64_t count, std::int64_t most) { return (count + most - 1) / most; }

/// y [out_channels, pixels] = w [out_channels, taps] times the taps of the pixels.
void forward_image(Stream& stream, const Conv2dShape& shape, const float* x, const float* w,
                   float* y) {
  const Sizes sizes(shape);
  const PlaneShape plane(shape);
  const std::int64_t panel = sizes.taps * panel_columns;
  const std::int64_t panels = std::clamp<std::int64_t>(most_floats / panel, 1, 16);
  const std::int64_t plane_floats = Scratch::lines(shape.in_channels * plane.channel());
  Scratch scratch(stream, plane_floats + panels * panel);
  float* planes = scratch.take(plane_floats);
  float* b = scratch.take(panels * panel);
  cut_planes(plane, x, planes, shape.in_channels);
  for (std::int64_t first = 0; first < sizes.pixels; first += panels * panel_columns) {
    const std::int64_t count = std::min(panels * panel_columns, sizes.pixels - first);
    for (std::int64_t p = 0; p < count; p += panel_columns) {
      float* rows = b + p / panel_columns * panel;
      const std::int64_t columns = std::min(panel_columns, count - p);
      if (columns < panel_columns) std::fill_n(rows, panel, 0.0f);
      read_taps(plane, planes, TapRows{0, sizes.taps, {first + p, columns}, panel_columns}, rows);
    }
    multiply(Product<float>{.rows = shape.out_channels,
                            .columns = count,
                            .depth = sizes.taps,
                            .a = {w, sizes.taps, Order::by_row},
                            .c = y + first,
                            .c_stride = sizes.pixels},
             Panels<float>{b, panel});
  }
}

/// Computes the gradient of the taps, w^T [taps, out_channels] times dy [out_channels, pixels].
/// Then adds each tap to its input pixel, a few channels at a time.
void backward_image(Stream& stream, const Conv2dShape& shape, const float* w, const float* dy,
                    float* dx) {
  const Sizes sizes(shape);
  const PlaneShape plane(shape);
  const std::int64_t panel = shape.out_channels * panel_columns;
  const std::int64_t packed = cpu::panel_count(sizes.pixels) * panel;
  const std::int64_t taps = shape.kernel * shape.kernel;
  const std::int64_t together =
      std::clamp<std::int64_t>(most_floats / (taps * sizes.pixels), 1, shape.in_channels);
  const std::int64_t plane_floats = Scratch::lines(together * plane.channel());
  const std::int64_t row_floats = Scratch::lines(together * taps * sizes.pixels);
  Scratch scratch(stream, packed + plane_floats + row_floats);
  float* b = scratch.take(packed);
  float* planes = scratch.take(plane_floats);
  float* rows = scratch.take(row_floats);
  pack_panels(Matrix<float>{dy, sizes.pixels, Order::by_row}, shape.out_channels, sizes.pixels, b,
              panel);
  for (std::int64_t first = 0; first < shape.in_channels; first += together) {
    const std::int64_t channels = std::min(together, shape.in_channels - first);
    multiply(Product<float>{.rows = channels * taps,
                            .columns = sizes.pixels,
                            .depth = shape.out_channels,
                            .a = {w + first * taps, sizes.taps, Order::by_column},
                            .c = rows,
                            .c_stride = sizes.pixels},
             Panels<float>{b, panel});
    std::fill_n(planes, channels * plane.channel(), 0.0f);
    add_taps(plane, rows, TapRows{0, channels * taps, {0, sizes.pixels}, sizes.pixels}, planes);
    join_planes(plane, planes, dx + first * shape.height * shape.width, channels);
  }
}

/// One group of the images of a batch, and the gradient of its weights.
struct GroupOfImages {
  const float* x;
  std::int64_t x_stride;  // From an image to the next.
  const float* dy;        // Packed for each image.
  std::int64_t dy_stride;
  float* dw;
};

/// Computes the gradient of some input channels, transposed: dw^T [taps, out_channels] += the taps
/// of the pixels [taps, pixels] times dy^T [pixels, out_channels].
void weight_gradient(Stream& stream, const Conv2dShape& shape, const GroupOfImages& group,
                     std::int64_t first_channel, std::int64_t channels) {
  const Sizes sizes(shape);
  const PlaneShape plane(shape);
  const std::int64_t kernel_taps = shape.kernel * shape.kernel, taps = channels * kernel_taps;
  const std::int64_t most_pixels =
      std::clamp<std::int64_t>(most_floats / taps / panel_columns * panel_columns, panel_columns,
                               std::max(panel_columns, sizes.pixels));
  const std::int64_t panel = sizes.pixels * panel_columns;
  const std::int64_t plane_floats = Scratch::lines(channels * plane.channel());
  const std::int64_t sum_floats = Scratch::lines(taps * shape.out_channels);
  Scratch scratch(stream, plane_floats + Scratch::lines(taps * most_pixels) + sum_floats);
  float* planes = scratch.take(plane_floats);
  float* rows = scratch.take(taps * most_pixels);
  float* sums = scratch.take(sum_floats);
  const auto weight = [&](std::int64_t tap, std::int64_t out) -> float& {
    return group.dw[out * sizes.taps + first_channel * kernel_taps + tap];
  };
  for (std::int64_t tap = 0; tap < taps; ++tap)
    for (std::int64_t out = 0; out < shape.out_channels; ++out)
      sums[tap * shape.out_channels + out] = weight(tap, out);
  for (std::int64_t image = 0; image < shape.batch; ++image) {
    cut_planes(plane, group.x + image * group.x_stride + first_channel * shape.height * shape.width,
               planes, channels);
    for (std::int64_t first = 0; first < sizes.pixels; first += most_pixels) {
      const std::int64_t count = std::min(most_pixels, sizes.pixels - first);
      read_taps(plane, planes, TapRows{0, taps, {first, count}, most_pixels}, rows);
      multiply(Product<float>{.rows = taps,
                              .columns = shape.out_channels,
                              .depth = count,
                              .a = {rows, most_pixels, Order::by_row},
                              .start = sums,
                              .start_stride = shape.out_channels,
                              .c = sums,
                              .c_stride = shape.out_channels},
               Panels<float>{group.dy + image * group.dy_stride + first * panel_columns, panel});
    }
  }
  for (std::int64_t tap = 0; tap < taps; ++tap)
    for (std::int64_t out = 0; out < shape.out_channels; ++out)
      weight(tap, out) = sums[tap * shape.out_channels + out];
}

}  // namespace

void conv2d_forward(Stream& stream, const Conv2dShape& shape, const float* x, const float* w,
                    float* y) {
  if (const auto* there = kernels_of(stream)) return there->conv2d_forward(stream, shape, x, w, y);
  const Conv2dShape group = shape.of_a_group();
  const Sizes sizes(group);
  stream.for_each(shape.batch * shape.groups, [&](std::int64_t i) {
    const std::int64_t weights = i % shape.groups * group.weights();
    forward_image(stream, group, x + i * sizes.in_image, w + weights, y + i * sizes.out_image);
  });
}

void conv2d_backward_input(Stream& stream, const Conv2dShape& shape, const float* w,
                           const float* dy, float* dx) {
  if (const auto* there = kernels_of(stream))
    return there->conv2d_backward_input(stream, shape, w, dy, dx);
  const Conv2dShape group = shape.of_a_group();
  const Sizes sizes(group);
  stream.for_each(shape.batch * shape.groups, [&](std::int64_t i) {
    const std::int64_t weights = i % shape.groups * group.weights();
    backward_image(stream, group, w + weights, dy + i * sizes.out_image, dx + i * sizes.in_image);
  });
}

void conv2d_backward_weight(Stream& stream, const Conv2dShape& shape, const float* x,
                            const float* dy, float* dw) {
  if (const auto* there = kernels_of(stream))
    return there->conv2d_backward_weight(stream, shape, x, dy, dw);
  const Conv2dShape group = shape.of_a_group();
  const Sizes sizes(group);
  const std::int64_t panel = sizes.pixels * panel_columns;
  const std::int64_t packed = cpu::panel_count(group.out_channels) * panel;
  // A few groups at a time, since a panel of a group with few channels is mostly empty.
  constexpr std::int64_t most_packed = std::int64_t{1} << 20;
  const std::int64_t at_once =
      std::clamp<std::int64_t>(most_packed / (shape.batch * packed), 1, shape.groups);
  Scratch scratch(stream, at_once * shape.batch * packed);
  float* transposed = scratch.take(at_once * shape.batch * packed);
  // Each thread computes the weights of some input channels.
  constexpr std::int64_t most_taps = 96;
  const std::int64_t together =
      std::max<std::int64_t>(1, most_taps / (shape.kernel * shape.kernel));
  const std::int64_t pieces = pieces_of(group.in_channels, together);
  for (std::int64_t first_group = 0; first_group < shape.groups; first_group += at_once) {
    const std::int64_t groups = std::min(at_once, shape.groups - first_group);
    stream.for_each(groups * shape.batch, [&](std::int64_t i) {
      const std::int64_t image = i % shape.batch, g = first_group + i / shape.batch;
      pack_panels(Matrix<float>{dy + (image * shape.groups + g) * sizes.out_image, sizes.pixels,
                                Order::by_column},
                  sizes.pixels, group.out_channels, transposed + i * packed, panel);
    });
    stream.for_each(groups * pieces, [&](std::int64_t i) {
      const std::int64_t piece = i % pieces, g = first_group + i / pieces;
      const std::int64_t first = piece * group.in_channels / pieces;
      const std::int64_t end = (piece + 1) * group.in_channels / pieces;
      weight_gradient(stream, group,
                      {.x = x + g * sizes.in_image,
                       .x_stride = shape.groups * sizes.in_image,
                       .dy = transposed + i / pieces * shape.batch * packed,
                       .dy_stride = packed,
                       .dw = dw + g * group.weights()},
                      first, end - first);
    });
  }
}

}  // namespace troupe::kernels
