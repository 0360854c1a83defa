#include "kernels/cuda/gelu.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/rounding.h"
#include "kernels/cuda/row_sums.cuh"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

template <class Number>
struct Round {
  const float* x;
  Number* y;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const auto from = read_pack<n>(x, i);
    Pack<Number, n> to;
    for (int k = 0; k < n; ++k) to[k] = Number::from(from[k]);
    write_pack(y, i, to);
  }
};

template <class Number>
struct Widen {
  const Number* x;
  float* y;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const auto from = read_pack<n>(x, i);
    Pack<float, n> to;
    for (int k = 0; k < n; ++k) to[k] = from[k].to_float();
    write_pack(y, i, to);
  }
};

template <class Number>
struct AddWidened {
  const Number* x;
  float* y;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const auto from = read_pack<n>(x, i);
    auto to = read_pack<n>(y, i);
    for (int k = 0; k < n; ++k) to[k] += from[k].to_float();
    write_pack(y, i, to);
  }
};

/// Returns the input of gelu(), at least -100. gelu() is flat there, and at -infinity, to which
/// fp16 rounds numbers below -65504, its formulas give NaN.
template <class Number>
__device__ float input_of_gelu(Number pre) {
  return at_least(pre.to_float(), -100.0f);
}

template <Gelu form, class Number>
struct TakeGelu {
  const Number* pre;
  Number* y;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const auto from = read_pack<n>(pre, i);
    Pack<float, n> to;
    for (int k = 0; k < n; ++k) to[k] = GeluOf<form>::value(input_of_gelu(from[k]));
    write_pack(y, i, narrow_computed<Number>(to));
  }
};

template <Gelu form, class Number>
struct ScaleByGeluSlope {
  const Number* pre;
  Number* dpre;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const auto from = read_pack<n>(pre, i), gradients = read_pack<n>(dpre, i);
    Pack<float, n> to;
    for (int k = 0; k < n; ++k)
      to[k] = gradients[k].to_float() * GeluOf<form>::slope(input_of_gelu(from[k]));
    write_pack(dpre, i, narrow_computed<Number>(to));
  }
};

/// Packs must not go over the end of a row.
template <class Number>
struct WidenRows {
  Heads<const Number> x;
  float* y;
  std::int64_t columns;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const std::int64_t row = i / columns;
    const auto from = read_pack<n>(x.data, row * x.row + (i - row * columns));
    Pack<float, n> to;
    for (int k = 0; k < n; ++k) to[k] = from[k].to_float();
    write_pack(y, i, to);
  }
};

/// Packs must not go over the end of a row.
template <class Number>
struct RoundRows {
  const float* x;
  Heads<Number> y;
  std::int64_t columns;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const std::int64_t row = i / columns;
    const auto from = read_pack<n>(x, i);
    Pack<Number, n> to;
    for (int k = 0; k < n; ++k) to[k] = Number::from(from[k]);
    write_pack(y.data, row * y.row + (i - row * columns), to);
  }
};

}  // namespace

template <class Number>
void round_all(Stream& stream, const float* x, Number* y, std::int64_t count) {
  for_packs<in_access<Number>>(stream, count, are_aligned(x, y), Round<Number>{x, y});
}
template <class Number>
void widen_all(Stream& stream, const Number* x, float* y, std::int64_t count) {
  for_packs<in_access<Number>>(stream, count, are_aligned(x, y), Widen<Number>{x, y});
}
template <class Number>
void add_widened(Stream& stream, const Number* x, float* y, std::int64_t count) {
  for_packs<in_access<Number>>(stream, count, are_aligned(x, y), AddWidened<Number>{x, y});
}
template <class Number>
void widen_rows(Stream& stream, Heads<const Number> x, float* y, std::int64_t rows,
                std::int64_t columns) {
  constexpr int n = in_access<Number>;
  for_packs<n>(stream, rows * columns, columns % n == 0 && x.row % n == 0 && are_aligned(x.data, y),
               WidenRows<Number>{x, y, columns});
}
template <class Number>
void round_rows(Stream& stream, const float* x, Heads<Number> y, std::int64_t rows,
                std::int64_t columns) {
  constexpr int n = in_access<Number>;
  for_packs<n>(stream, rows * columns, columns % n == 0 && y.row % n == 0 && are_aligned(x, y.data),
               RoundRows<Number>{x, y, columns});
}

template <class Number>
void take_gelu(Stream& stream, Gelu form, const Number* pre, Number* y, std::int64_t count) {
  switch (form) {
    case Gelu::erf:
      return for_packs<in_access<Number>>(stream, count, are_aligned(pre, y),
                                          TakeGelu<Gelu::erf, Number>{pre, y});
    case Gelu::tanh:
      return for_packs<in_access<Number>>(stream, count, are_aligned(pre, y),
                                          TakeGelu<Gelu::tanh, Number>{pre, y});
  }
}
template <class Number>
void scale_by_gelu_slope(Stream& stream, Gelu form, const Number* pre, Number* dpre,
                         std::int64_t count) {
  switch (form) {
    case Gelu::erf:
      return for_packs<in_access<Number>>(stream, count, are_aligned(pre, dpre),
                                          ScaleByGeluSlope<Gelu::erf, Number>{pre, dpre});
    case Gelu::tanh:
      return for_packs<in_access<Number>>(stream, count, are_aligned(pre, dpre),
                                          ScaleByGeluSlope<Gelu::tanh, Number>{pre, dpre});
  }
}

template <class Number>
void add_rounded_rows(Stream& stream, const Number* dy, float* db, std::int64_t rows,
                      std::int64_t columns) {
  add_up_rows(stream, dy, db, rows, columns);
}

template void round_all(Stream&, const float*, Float16*, std::int64_t);
template void widen_all(Stream&, const Float16*, float*, std::int64_t);
template void add_widened(Stream&, const Float16*, float*, std::int64_t);
template void widen_rows(Stream&, Heads<const Float16>, float*, std::int64_t, std::int64_t);
template void round_rows(Stream&, const float*, Heads<Float16>, std::int64_t, std::int64_t);
template void take_gelu(Stream&, Gelu, const Float16*, Float16*, std::int64_t);
template void scale_by_gelu_slope(Stream&, Gelu, const Float16*, Float16*, std::int64_t);
template void add_rounded_rows(Stream&, const Float16*, float*, std::int64_t, std::int64_t);

template void round_all(Stream&, const float*, BFloat16*, std::int64_t);
template void widen_all(Stream&, const BFloat16*, float*, std::int64_t);
template void add_widened(Stream&, const BFloat16*, float*, std::int64_t);
template void widen_rows(Stream&, Heads<const BFloat16>, float*, std::int64_t, std::int64_t);
template void round_rows(Stream&, const float*, Heads<BFloat16>, std::int64_t, std::int64_t);
template void take_gelu(Stream&, Gelu, const BFloat16*, BFloat16*, std::int64_t);
template void scale_by_gelu_slope(Stream&, Gelu, const BFloat16*, BFloat16*, std::int64_t);
template void add_rounded_rows(Stream&, const BFloat16*, float*, std::int64_t, std::int64_t);

}  // namespace troupe::kernels::cuda
