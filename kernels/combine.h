#pragma once

#include <cstdint>

#include "core/memory/stream.h"

namespace troupe::kernels {

/// y = a x + b z, elementwise. y may be x or z.
void combine(Stream& stream, float a, const float* x, float b, const float* z, float* y,
             std::int64_t count);
void combine(Stream& stream, double a, const double* x, double b, const double* z, double* y,
             std::int64_t count);

/// y *= x.
void multiply(Stream& stream, const float* x, float* y, std::int64_t count);
void multiply(Stream& stream, const double* x, double* y, std::int64_t count);

}  // namespace troupe::kernels
