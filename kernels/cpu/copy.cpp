#include "kernels/copy.h"

#include <algorithm>

#include "kernels/device_kernels.h"

namespace troupe::kernels {
namespace {

constexpr std::int64_t grain = 65'536;

template <class T>
void fill_all(Stream& stream, T value, T* y, std::int64_t count) {
  stream.for_each((count + grain - 1) / grain, [=](std::int64_t block) {
    std::fill_n(y + block * grain, std::min(grain, count - block * grain), value);
  });
}

}  // namespace

void fill(Stream& stream, float value, float* y, std::int64_t count) {
  if (const auto* there = kernels_of(stream)) return there->fill(stream, value, y, count);
  fill_all(stream, value, y, count);
}
void fill(Stream& stream, double value, double* y, std::int64_t count) {
  fill_all(stream, value, y, count);
}

void copy_rows(Stream& stream, RowsIn from, RowsOut to, std::int64_t rows, std::int64_t columns) {
  if (const auto* there = kernels_of(stream))
    return there->copy_rows(stream, from, to, rows, columns);
  stream.for_each(rows, [=](std::int64_t row) {
    std::copy_n(from.data + row * from.stride, columns, to.data + row * to.stride);
  });
}

}  // namespace troupe::kernels
