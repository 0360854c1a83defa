#include "kernels/cpu/parts/planes.h"

#include <algorithm>

#include "kernels/cpu/parts/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/parts/planes.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Calls body(tag, i) for vectors that cover [0, count). The last vectors get shorter and shorter,
/// since rows of an image may be short.
template <std::int64_t most = 16, class Body>
HWY_INLINE void each_short_vector(std::int64_t count, Body body, std::int64_t i = 0) {
  const hn::CappedTag<float, most> tag;
  constexpr std::int64_t lanes = hn::MaxLanes(tag);
  for (; i + lanes <= count; i += lanes) body(tag, i);
  if constexpr (most > 1)
    if (i < count) each_short_vector<most / 2>(count, body, i);
}

/// Calls body(offset, row, index, count) for each contiguous run of a matrix of taps. The run
/// begins at planes + offset, and in the matrix at column `index` of `row`.
template <class Body>
HWY_INLINE void each_run(const PlaneShape& shape, const TapRows& matrix, Body body) {
  const auto [begin, pixels] = matrix.pixels;
  const std::int64_t first_y = begin / shape.out_width, first_x = begin % shape.out_width;
  TapPlace tap(shape, matrix.first_tap);
  for (std::int64_t row = 0; row < matrix.taps; ++row, tap.next()) {
    std::int64_t y = first_y, x = first_x;
    for (std::int64_t done = 0; done < pixels; ++y, x = 0) {
      const std::int64_t count = std::min(shape.out_width - x, pixels - done);
      body(tap.offset() + y * shape.width + x, row, done, count);
      done += count;
    }
  }
}

void read_tap_rows(const PlaneShape& shape, const float* planes, const TapRows& matrix,
                   float* rows) {
  each_run(shape, matrix,
           [=](std::int64_t offset, std::int64_t row, std::int64_t index, std::int64_t count)
               HWY_ATTR {
                 const float* from = planes + offset;
                 float* to = rows + row * matrix.stride + index;
                 each_short_vector(count, [=](auto tag, std::int64_t i) HWY_ATTR {
                   hn::StoreU(hn::LoadU(tag, from + i), tag, to + i);
                 });
               });
}

void add_tap_rows(const PlaneShape& shape, const float* rows, const TapRows& matrix,
                  float* planes) {
  each_run(
      shape, matrix,
      [=](std::int64_t offset, std::int64_t row, std::int64_t index, std::int64_t count) HWY_ATTR {
        const float* from = rows + row * matrix.stride + index;
        float* to = planes + offset;
        each_short_vector(count, [=](auto tag, std::int64_t i) HWY_ATTR {
          hn::StoreU(hn::Add(hn::LoadU(tag, to + i), hn::LoadU(tag, from + i)), tag, to + i);
        });
      });
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::kernels::cpu {
namespace {

HWY_EXPORT(read_tap_rows);
HWY_EXPORT(add_tap_rows);

/// Calls body(offset, y, first, end, shift) for each row of each plane of one channel. The row
/// begins at `offset` in the planes. It lies on image row y; if y is outside the image, the row is
/// border. For q in [first, end), its column q is the image's column q * stride + shift.
template <class Body>
void each_plane_row(const PlaneShape& s, Body body) {
  for (std::int64_t row_remainder = 0; row_remainder < s.remainders; ++row_remainder)
    for (std::int64_t column_remainder = 0; column_remainder < s.remainders; ++column_remainder) {
      const std::int64_t plane = row_remainder * s.remainders + column_remainder;
      const std::int64_t shift = column_remainder - s.padding;
      const std::int64_t first =
          std::clamp<std::int64_t>(shift < 0 ? (-shift + s.stride - 1) / s.stride : 0, 0, s.width);
      const std::int64_t behind = s.image_width - shift;
      const std::int64_t end = std::clamp<std::int64_t>(
          behind > 0 ? (behind + s.stride - 1) / s.stride : 0, first, s.width);
      for (std::int64_t r = 0; r < s.height; ++r) {
        const std::int64_t y = r * s.stride + row_remainder - s.padding;
        body((plane * s.height + r) * s.width, y, first, end, shift);
      }
    }
}

}  // namespace

PlaneShape::PlaneShape(const Conv2dShape& s)
    : stride(s.stride),
      padding(s.padding),
      kernel(s.kernel),
      image_height(s.height),
      image_width(s.width),
      remainders(std::min(s.stride, s.kernel)),
      height(s.out_height() + (s.kernel - 1) / s.stride),
      width(s.out_width() + (s.kernel - 1) / s.stride),
      out_width(s.out_width()) {}

void cut_planes(const PlaneShape& s, const float* image, float* planes, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const float* channel = image + c * s.image_height * s.image_width;
    float* to = planes + c * s.channel();
    each_plane_row(s, [&](std::int64_t row, std::int64_t y, std::int64_t first, std::int64_t end,
                          std::int64_t shift) {
      std::fill_n(to + row, s.width, 0.0f);
      if (y < 0 || y >= s.image_height) return;
      const float* from = channel + y * s.image_width + shift;
      for (std::int64_t q = first; q < end; ++q) to[row + q] = from[q * s.stride];
    });
  }
}

void join_planes(const PlaneShape& s, const float* planes, float* image, std::int64_t channels) {
  std::fill_n(image, channels * s.image_height * s.image_width, 0.0f);
  for (std::int64_t c = 0; c < channels; ++c) {
    const float* from = planes + c * s.channel();
    float* channel = image + c * s.image_height * s.image_width;
    each_plane_row(s, [&](std::int64_t row, std::int64_t y, std::int64_t first, std::int64_t end,
                          std::int64_t shift) {
      if (y < 0 || y >= s.image_height) return;
      float* to = channel + y * s.image_width + shift;
      for (std::int64_t q = first; q < end; ++q) to[q * s.stride] = from[row + q];
    });
  }
}

void read_taps(const PlaneShape& shape, const float* planes, const TapRows& matrix, float* rows) {
  HWY_DYNAMIC_DISPATCH(read_tap_rows)(shape, planes, matrix, rows);
}
void add_taps(const PlaneShape& shape, const float* rows, const TapRows& matrix, float* planes) {
  HWY_DYNAMIC_DISPATCH(add_tap_rows)(shape, rows, matrix, planes);
}

}  // namespace troupe::kernels::cpu
#endif
