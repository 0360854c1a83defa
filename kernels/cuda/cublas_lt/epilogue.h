#pragma once

#include <cstdint>

namespace troupe::kernels::cublas_lt {

enum class EpilogueKind : std::uint8_t {
  none,
  rounded,       // result = the sums + bias, if there is one.
  gelu,          // pre = the sums + bias, result = gelu(pre), with tanh.
  gelu_slope,    // result = the sums, times gelu'(pre).
  rows_of_a,     // sums[i] = what row i of a adds up to,
  columns_of_b,  // or column i of b.
};

constexpr bool has_gelu(EpilogueKind kind) {
  return kind == EpilogueKind::gelu || kind == EpilogueKind::gelu_slope;
}
constexpr bool takes_place_of_c(EpilogueKind kind) {
  return kind == EpilogueKind::rounded || has_gelu(kind);
}

/// What else is made with a product. What takes the place of c is, with all that it has to do with,
/// of the factors' type, which has 16 bits, and without gaps between rows.
template <class Number>
struct Epilogue {
  EpilogueKind kind = EpilogueKind::none;
  const Number* bias = nullptr;
  const Number* pre = nullptr;  // gelu writes it.
  Number* result = nullptr;
  float* sums = nullptr;
};

}  // namespace troupe::kernels::cublas_lt
