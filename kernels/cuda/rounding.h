#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "kernels/device_kernels.h"

/// Conversions between fp32 and 16-bit numbers, Float16 or BFloat16.
namespace troupe::kernels::cuda {

template <class Number>
void round_all(Stream& stream, const float* x, Number* y, std::int64_t count);
template <class Number>
void widen_all(Stream& stream, const Number* x, float* y, std::int64_t count);
/// y += x.
template <class Number>
void add_widened(Stream& stream, const Number* x, float* y, std::int64_t count);

/// These convert `rows` rows of heads. In fp32 the rows have no gaps.
template <class Number>
void widen_rows(Stream& stream, Heads<const Number> x, float* y, std::int64_t rows,
                std::int64_t columns);
template <class Number>
void round_rows(Stream& stream, const float* x, Heads<Number> y, std::int64_t rows,
                std::int64_t columns);

/// y = gelu(pre).
template <class Number>
void take_gelu(Stream& stream, Gelu form, const Number* pre, Number* y, std::int64_t count);
/// dpre *= gelu'(pre).
template <class Number>
void scale_by_gelu_slope(Stream& stream, Gelu form, const Number* pre, Number* dpre,
                         std::int64_t count);

/// db[c] += the sum over rows of dy[r, c], in the order of kernels/row_sums.h.
template <class Number>
void add_rounded_rows(Stream& stream, const Number* dy, float* db, std::int64_t rows,
                      std::int64_t columns);

}  // namespace troupe::kernels::cuda
