#pragma once

#include <cstdint>

#include "kernels/conv2d.h"

namespace troupe::kernels::cpu {

/// The layout of an image's channels for a convolution, with border. Each channel is cut into
/// planes, one per remainder of row and column by the stride. So neighbours in an output row read
/// neighbours, whatever the stride is. The tap (c, i, j) of the output pixel (y, x) reads
/// planes[tap(c, i, j) + y * width + x].
struct PlaneShape {
  explicit PlaneShape(const Conv2dShape& shape);

  std::int64_t stride, padding, kernel;
  std::int64_t image_height, image_width;
  std::int64_t remainders;     // Remainders by the stride, per direction.
  std::int64_t height, width;  // Size of a plane.
  std::int64_t out_width;

  std::int64_t channel() const { return remainders * remainders * height * width; }
};

/// The read positions of the taps in the order of a weight's elements: channel, kernel row, kernel
/// column. Needs no division, since the inner loop calls it every few pixels.
class TapPlace {
 public:
  TapPlace(const PlaneShape& shape, std::int64_t first_tap)
      : shape_(shape),
        channel_(first_tap / (shape.kernel * shape.kernel)),
        row_(shape, first_tap / shape.kernel % shape.kernel),
        column_(shape, first_tap % shape.kernel) {}

  void next() {
    if (column_.next(shape_) && row_.next(shape_)) ++channel_;
  }
  std::int64_t offset() const {
    const std::int64_t plane = row_.remainder * shape_.remainders + column_.remainder;
    return channel_ * shape_.channel() + (plane * shape_.height + row_.quotient) * shape_.width +
           column_.quotient;
  }

 private:
  /// A row or column of the kernel, with quotient and remainder by the stride.
  struct Place {
    std::int64_t at, quotient, remainder;

    Place(const PlaneShape& shape, std::int64_t at)
        : at(at), quotient(at / shape.stride), remainder(at % shape.stride) {}

    /// Advances by one. Returns true if it has wrapped around to 0.
    bool next(const PlaneShape& shape) {
      if (++at == shape.kernel) {
        at = quotient = remainder = 0;
        return true;
      }
      if (++remainder == shape.stride) {
        remainder = 0;
        ++quotient;
      }
      return false;
    }
  };

  PlaneShape shape_;
  std::int64_t channel_;
  Place row_, column_;
};

/// A range of output pixels in the order of the image.
struct Pixels {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// Fills the planes of `channels` channels; the border is zero.
void cut_planes(const PlaneShape& shape, const float* image, float* planes, std::int64_t channels);
/// Copies the planes back to an image and drops the border.
void join_planes(const PlaneShape& shape, const float* planes, float* image, std::int64_t channels);

/// A range of taps and pixels as a matrix with a row for each tap.
struct TapRows {
  std::int64_t first_tap = 0;
  std::int64_t taps = 0;
  Pixels pixels;
  std::int64_t stride = 0;  // Between rows.
};
/// rows[t, p] = the input of tap t at pixel p.
void read_taps(const PlaneShape& shape, const float* planes, const TapRows& matrix, float* rows);
/// Adds rows[t, p] to the input of tap t at pixel p, tap after tap.
void add_taps(const PlaneShape& shape, const float* rows, const TapRows& matrix, float* planes);

}  // namespace troupe::kernels::cpu
