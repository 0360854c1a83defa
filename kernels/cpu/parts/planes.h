#pragma once

#include <cstdint>

#include "kernels/conv2d.h"

namespace troupe::kernels::cpu {

/// Channels of an image as a convolution reads them: with the border, and cut into planes, one for
/// each remainder of row and column by the stride. So neighbours in an output row read neighbours,
/// whatever the stride is: the tap (c, i, j) of the output pixel (y, x) reads
/// planes[tap(c, i, j) + y * width + x].
struct PlaneShape {
  explicit PlaneShape(const Conv2dShape& shape);

  std::int64_t stride, padding, kernel;
  std::int64_t image_height, image_width;
  std::int64_t remainders;     // By the stride, in each direction, as far as the kernel reaches.
  std::int64_t height, width;  // Of a plane.
  std::int64_t out_width;

  std::int64_t channel() const { return remainders * remainders * height * width; }
};

/// Where the taps read, one after the other in the order of a weight's elements: by channel, row
/// and column of the kernel. Divides nothing, since it is asked for every few pixels.
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
  /// A row or column of the kernel, and what its division by the stride gives.
  struct Place {
    std::int64_t at, quotient, remainder;

    Place(const PlaneShape& shape, std::int64_t at)
        : at(at), quotient(at / shape.stride), remainder(at % shape.stride) {}

    /// Whether it has begun anew.
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

/// Some output pixels, in the order of the image.
struct Pixels {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// Fills the planes of so many channels; the border is zero.
void cut_planes(const PlaneShape& shape, const float* image, float* planes, std::int64_t channels);
/// The other way; the border is dropped.
void join_planes(const PlaneShape& shape, const float* planes, float* image, std::int64_t channels);

/// Some taps of some pixels as a matrix: a row for each tap.
struct TapRows {
  std::int64_t first_tap = 0;
  std::int64_t taps = 0;
  Pixels pixels;
  std::int64_t stride = 0;  // From row to row.
};
/// rows[t, p] = what tap t of pixel p reads.
void read_taps(const PlaneShape& shape, const float* planes, const TapRows& matrix, float* rows);
/// Adds rows[t, p] to where tap t of pixel p reads, tap after tap.
void add_taps(const PlaneShape& shape, const float* rows, const TapRows& matrix, float* planes);

}  // namespace troupe::kernels::cpu
