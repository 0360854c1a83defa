#pragma once

#include <compare>
#include <cstdint>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "kernels/precision.h"

namespace troupe::kernels {

/// Images are [batch, channels, height, width]; weights are [out_channels, in_channels / groups,
/// kernel, kernel]. There is no bias. Both numbers of channels are multiples of `groups`. The
/// channels of group g of the output read those of group g of the input.
struct Conv2dShape {
  std::int64_t batch = 0;
  std::int64_t in_channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t out_channels = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;

  auto operator<=>(const Conv2dShape&) const = default;

  constexpr std::int64_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  constexpr std::int64_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }

  /// Returns the convolution of one group.
  constexpr Conv2dShape of_a_group() const {
    Conv2dShape one = *this;
    one.in_channels /= groups;
    one.out_channels /= groups;
    one.groups = 1;
    return one;
  }
  constexpr std::int64_t weights() const {
    return out_channels * (in_channels / groups) * kernel * kernel;
  }
};

void conv2d_forward(Stream& stream, const Conv2dShape& shape, const float* x, const float* w,
                    float* y);
/// Overwrites dx.
void conv2d_backward_input(Stream& stream, const Conv2dShape& shape, const float* w,
                           const float* dy, float* dx);
/// Adds to dw, sample by sample in order.
void conv2d_backward_weight(Stream& stream, const Conv2dShape& shape, const float* x,
                            const float* dy, float* dw);

/// These run the kernels above on tensors of the precision's activation_type(); only dw is fp32.
/// Tensor cores choose the order of their sums.
void convolve(Stream& stream, const Conv2dShape& shape, Precision precision, const Tensor& x,
              const Tensor& w, Tensor& y);
void convolve_back_to_input(Stream& stream, const Conv2dShape& shape, Precision precision,
                            const Tensor& w, const Tensor& dy, Tensor& dx);
void convolve_back_to_weight(Stream& stream, const Conv2dShape& shape, Precision precision,
                             const Tensor& x, const Tensor& dy, Tensor& dw);

}  // namespace troupe::kernels
