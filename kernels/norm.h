#pragma once

#include <cstdint>

#include "core/memory/stream.h"

namespace troupe::kernels {

/// y = (x - mean) / sqrt(variance + eps) * weight + bias over each row; stores the mean and
/// 1/sqrt(...) of each row.
void layer_norm_forward(Stream& stream, const float* x, const float* weight, const float* bias,
                        float* y, float* mean, float* rstd, std::int64_t rows, std::int64_t columns,
                        float eps);
/// sum = a + b, and layer_norm_forward() of the sum.
void layer_norm_forward_of_sum(Stream& stream, const float* a, const float* b, float* sum,
                               const float* weight, const float* bias, float* y, float* mean,
                               float* rstd, std::int64_t rows, std::int64_t columns, float eps);
/// dx = the gradient of x, plus `more` unless that is null. dx may be dy or `more`.
void layer_norm_backward_input(Stream& stream, const float* x, const float* weight,
                               const float* mean, const float* rstd, const float* dy,
                               const float* more, float* dx, std::int64_t rows,
                               std::int64_t columns);
/// Adds to dweight and dbias, in the order of kernels/row_sums.h. The RMS version does so too.
void layer_norm_backward_weight(Stream& stream, const float* x, const float* mean,
                                const float* rstd, const float* dy, float* dweight, float* dbias,
                                std::int64_t rows, std::int64_t columns);

/// y = x / sqrt(mean(x^2) + eps) * weight over each row; stores 1/sqrt(...) of each row.
void rms_norm_forward(Stream& stream, const float* x, const float* weight, float* y, float* rstd,
                      std::int64_t rows, std::int64_t columns, float eps);
/// sum = a + b, and rms_norm_forward() of the sum.
void rms_norm_forward_of_sum(Stream& stream, const float* a, const float* b, float* sum,
                             const float* weight, float* y, float* rstd, std::int64_t rows,
                             std::int64_t columns, float eps);
/// dx = the gradient of x, plus `more` unless that is null. dx may be dy or `more`.
void rms_norm_backward_input(Stream& stream, const float* x, const float* weight, const float* rstd,
                             const float* dy, const float* more, float* dx, std::int64_t rows,
                             std::int64_t columns);
void rms_norm_backward_weight(Stream& stream, const float* x, const float* rstd, const float* dy,
                              float* dweight, std::int64_t rows, std::int64_t columns);

}  // namespace troupe::kernels
