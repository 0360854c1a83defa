#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "kernels/float16.h"

namespace troupe::kernels {

/// y[i] = x[i], rounded.
void round_all(Stream& stream, const float* x, BFloat16* y, std::int64_t count);
void round_all(Stream& stream, const float* x, Float16* y, std::int64_t count);

/// y[i] = x[i].to_float().
void widen_all(Stream& stream, const BFloat16* x, float* y, std::int64_t count);
void widen_all(Stream& stream, const Float16* x, float* y, std::int64_t count);

/// Returns a copy of the numbers, rounded to bf16 or fp16.
Tensor rounded(Stream& stream, const float* numbers, const Shape& shape, DType type);

/// Returns the numbers in another type, rounded from fp32 or widened to it. If they have that type
/// already, returns the tensor itself.
Tensor as_type(Stream& stream, const Tensor& numbers, DType type);

}  // namespace troupe::kernels
