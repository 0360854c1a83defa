#pragma once

#include <cstdint>

namespace troupe::kernels::cublas_lt {

enum class EpilogueKind : std::uint8_t {
  none,
  rounded,       // result = the sums + bias, if there is a bias.
  gelu,          // pre = the sums + bias, result = gelu(pre), with tanh.
  gelu_slope,    // result = the sums * gelu'(pre).
  rows_of_a,     // sums[i] = the sum of row i of a.
  columns_of_b,  // sums[i] = the sum of column i of b.
};

constexpr bool has_gelu(EpilogueKind kind) {
  return kind == EpilogueKind::gelu || kind == EpilogueKind::gelu_slope;
}
constexpr bool takes_place_of_c(EpilogueKind kind) {
  return kind == EpilogueKind::rounded || has_gelu(kind);
}

/// The extra output of a product. `result` replaces c; it, `bias` and `pre` have the factors'
/// 16-bit type and no gaps between rows.
template <class Number>
struct Epilogue {
  EpilogueKind kind = EpilogueKind::none;
  const Number* bias = nullptr;
  const Number* pre = nullptr;  // Written by gelu, read by gelu_slope.
  Number* result = nullptr;
  float* sums = nullptr;
};

}  // namespace troupe::kernels::cublas_lt
