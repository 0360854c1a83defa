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
/// channel. Stores mean and rstd for the backward pass, and the unbiased variance for a running
/// average (0 if a channel has only one number). Sums are doubles, image by image.
void batch_norm_forward(Stream& stream, const ImageShape& shape, const float* x,
                        const float* weight, const float* bias, float* y, float* mean, float* rstd,
                        float* unbiased_variance, float eps);
/// Normalizes with given statistics, for evaluation.
void batch_norm_apply(Stream& stream, const ImageShape& shape, const float* x, const float* weight,
                      const float* bias, const float* mean, const float* variance, float* y,
                      float eps);
/// Includes the gradient through the statistics. dx may be dy.
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
