#include "kernels/cuda/gelu.cuh"
#include "kernels/cuda/rounding.h"
#include "kernels/cuda/row_sums.cuh"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

template <class Number>
struct Round {
  const float* x;
  __device__ Number operator()(std::int64_t i) const { return Number::from(x[i]); }
};

template <class Number>
struct Widen {
  const Number* x;
  __device__ float operator()(std::int64_t i) const { return x[i].to_float(); }
};

template <class Number>
struct AddWidened {
  const Number* x;
  float* y;
  __device__ void operator()(std::int64_t i) const { y[i] += x[i].to_float(); }
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
  __device__ void operator()(std::int64_t i) const {
    y[i] = Number::from(GeluOf<form>::value(input_of_gelu(pre[i])));
  }
};

template <Gelu form, class Number>
struct ScaleByGeluSlope {
  const Number* pre;
  Number* dpre;
  __device__ void operator()(std::int64_t i) const {
    dpre[i] = Number::from(dpre[i].to_float() * GeluOf<form>::slope(input_of_gelu(pre[i])));
  }
};

template <class Number>
struct WidenRows {
  Heads<const Number> x;
  float* y;
  std::int64_t columns;
  __device__ void operator()(std::int64_t i) const {
    y[i] = x.data[i / columns * x.row + i % columns].to_float();
  }
};

template <class Number>
struct RoundRows {
  const float* x;
  Heads<Number> y;
  std::int64_t columns;
  __device__ void operator()(std::int64_t i) const {
    y.data[i / columns * y.row + i % columns] = Number::from(x[i]);
  }
};

}  // namespace

template <class Number>
void round_all(Stream& stream, const float* x, Number* y, std::int64_t count) {
  for_values(stream, count, y, Round<Number>{x});
}
template <class Number>
void widen_all(Stream& stream, const Number* x, float* y, std::int64_t count) {
  for_values(stream, count, y, Widen<Number>{x});
}
template <class Number>
void add_widened(Stream& stream, const Number* x, float* y, std::int64_t count) {
  for_elements(stream, count, AddWidened<Number>{x, y});
}
template <class Number>
void widen_rows(Stream& stream, Heads<const Number> x, float* y, std::int64_t rows,
                std::int64_t columns) {
  for_elements(stream, rows * columns, WidenRows<Number>{x, y, columns});
}
template <class Number>
void round_rows(Stream& stream, const float* x, Heads<Number> y, std::int64_t rows,
                std::int64_t columns) {
  for_elements(stream, rows * columns, RoundRows<Number>{x, y, columns});
}

template <class Number>
void take_gelu(Stream& stream, Gelu form, const Number* pre, Number* y, std::int64_t count) {
  switch (form) {
    case Gelu::erf:
      return for_elements(stream, count, TakeGelu<Gelu::erf, Number>{pre, y});
    case Gelu::tanh:
      return for_elements(stream, count, TakeGelu<Gelu::tanh, Number>{pre, y});
  }
}
template <class Number>
void scale_by_gelu_slope(Stream& stream, Gelu form, const Number* pre, Number* dpre,
                         std::int64_t count) {
  switch (form) {
    case Gelu::erf:
      return for_elements(stream, count, ScaleByGeluSlope<Gelu::erf, Number>{pre, dpre});
    case Gelu::tanh:
      return for_elements(stream, count, ScaleByGeluSlope<Gelu::tanh, Number>{pre, dpre});
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
