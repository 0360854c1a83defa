#pragma once

#include <cstdint>

#include "core/memory/stream.h"

namespace troupe::kernels {

/// y[i] = value.
void fill(Stream& stream, float value, float* y, std::int64_t count);
void fill(Stream& stream, double value, double* y, std::int64_t count);

/// Rows that lie `stride` elements apart. A stride of 0 repeats the first row.
struct RowsIn {
  const float* data = nullptr;
  std::int64_t stride = 0;
};
struct RowsOut {
  float* data = nullptr;
  std::int64_t stride = 0;
};
void copy_rows(Stream& stream, RowsIn from, RowsOut to, std::int64_t rows, std::int64_t columns);

}  // namespace troupe::kernels
