#pragma once

#include <cstdint>

#include "core/memory/stream.h"

namespace troupe::kernels {

/// Images are [batch, channels, pixels].
struct ImageShape {
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t pixels = 0;
};

/// y = (x - mean) / sqrt(variance + eps) * weight + bias with the statistics of this batch, by
/// channel. Keeps mean and rstd for backward, and writes the unbiased variance that a running
/// average takes (0 where a channel has one number only). Sums are doubles, made image by image.
void batch_norm_forward(Stream& stream, const ImageShape& shape, const float* x,
                        const float* weight, const float* bias, float* y, float* mean, float* rstd,
                        float* unbiased_variance, float eps);
/// With given statistics, as evaluation does.
void batch_norm_apply(Stream& stream, const ImageShape& shape, const float* x, const float* weight,
                      const float* bias, const float* mean, const float* variance, float* y,
                      float eps);
/// Through the statistics too. dx may be dy.
void batch_norm_backward_input(Stream& stream, const ImageShape& shape, const float* x,
                               const float* weight, const float* mean, const float* rstd,
                               const float* dy, float* dx);
/// Adds to dweight and dbias.
void batch_norm_backward_weight(Stream& stream, const ImageShape& shape, const float* x,
                                const float* mean, const float* rstd, const float* dy,
                                float* dweight, float* dbias);

/// y[b, c] = mean of x[b, c, :].
void average_pool_forward(Stream& stream, const ImageShape& shape, const float* x, float* y);
void average_pool_backward(Stream& stream, const ImageShape& shape, const float* dy, float* dx);

}  // namespace troupe::kernels
