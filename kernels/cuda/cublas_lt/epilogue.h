#pragma once

#include <cstdint>

namespace troupe::kernels::cublas_lt {

enum class EpilogueKind : std::uint8_t {
  none,
  gelu,        // pre = the sums + bias, result = gelu(pre), with tanh.
  gelu_slope,  // result = the sums, times gelu'(pre).
};

/// What becomes of a product's sums in place of c. All that it names is of the factors' type, which
/// has 16 bits, and without gaps between rows.
template <class Number>
struct Epilogue {
  EpilogueKind kind = EpilogueKind::none;
  const Number* bias = nullptr;
  const Number* pre = nullptr;  // The first writes it.
  Number* result = nullptr;
};

}  // namespace troupe::kernels::cublas_lt
