#pragma once

#include <cstdint>

#include "core/memory/stream.h"

namespace troupe::kernels {

/// y[i] = value.
void fill(Stream& stream, float value, float* y, std::int64_t count);
void fill(Stream& stream, double value, double* y, std::int64_t count);

/// Rows, and the distance from one to the next. At a distance of 0 each is the first.
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
