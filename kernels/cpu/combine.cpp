#include "kernels/combine.h"

#include "kernels/cpu/parts/pieces.h"
#include "kernels/device_kernels.h"

namespace troupe::kernels {
namespace {

template <class T>
void combine_all(Stream& stream, T a, const T* x, T b, const T* z, T* y, std::int64_t count) {
  cpu::for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    for (auto i = first; i < first + size; ++i) y[i] = a * x[i] + b * z[i];
  });
}

template <class T>
void multiply_all(Stream& stream, const T* x, T* y, std::int64_t count) {
  cpu::for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    for (auto i = first; i < first + size; ++i) y[i] *= x[i];
  });
}

}  // namespace

void combine(Stream& stream, float a, const float* x, float b, const float* z, float* y,
             std::int64_t count) {
  if (const auto* there = kernels_of(stream)) return there->combine(stream, a, x, b, z, y, count);
  combine_all(stream, a, x, b, z, y, count);
}
void combine(Stream& stream, double a, const double* x, double b, const double* z, double* y,
             std::int64_t count) {
  combine_all(stream, a, x, b, z, y, count);
}

void multiply(Stream& stream, const float* x, float* y, std::int64_t count) {
  if (const auto* there = kernels_of(stream)) return there->multiply_elements(stream, x, y, count);
  multiply_all(stream, x, y, count);
}
void multiply(Stream& stream, const double* x, double* y, std::int64_t count) {
  multiply_all(stream, x, y, count);
}

}  // namespace troupe::kernels
