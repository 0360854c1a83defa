#pragma once

#include <cstdint>

#include "core/stream.h"
#include "kernels/device_kernels.h"

namespace troupe::kernels::cuda {

void round_to_bf16(Stream& stream, const float* x, BFloat16* y, std::int64_t count);
void widen_bf16(Stream& stream, const BFloat16* x, float* y, std::int64_t count);
/// y += x.
void add_widened(Stream& stream, const BFloat16* x, float* y, std::int64_t count);

/// The same for `rows` rows of heads, which lie without gaps in fp32.
void widen_rows(Stream& stream, DeviceHeads<const BFloat16> x, float* y, std::int64_t rows,
                std::int64_t columns);
void round_rows(Stream& stream, const float* x, DeviceHeads<BFloat16> y, std::int64_t rows,
                std::int64_t columns);

/// db[c] += sum over rows of dy[r, c]: by pieces of rows, then over these, always the same ones.
void add_rounded_rows(Stream& stream, const BFloat16* dy, float* db, std::int64_t rows,
                      std::int64_t columns);

}  // namespace troupe::kernels::cuda
