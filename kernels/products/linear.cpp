#include "kernels/linear.h"

#include <algorithm>
#include <cassert>
#include <type_traits>
#include <utility>

#include "kernels/cpu/parts/pieces.h"
#include "kernels/cpu/parts/product.h"
#include "kernels/cpu/parts/rows.h"
#include "kernels/device_kernels.h"
#include "kernels/on_cores.h"
#include "kernels/products/linear_parts.h"
#include "kernels/rounding.h"
#include "kernels/steps.h"

namespace troupe::kernels {
namespace {

using cpu::Matrix;
using cpu::Order;
using cpu::Product;

template <class Number>
DeviceProduct<Number> product_on_device(const Product<Number>& product, const Matrix<Number>& b) {
  return {.rows = product.rows,
          .columns = product.columns,
          .depth = product.depth,
          .a = on_device(product.a),
          .b = on_device(b),
          .start = product.start,
          .start_stride = product.start_stride,
          .c = product.c,
          .c_stride = product.c_stride};
}

/// Multiplies with b in its stored layout, on the tensor cores, the device or the cores.
template <class Number>
void multiply(Stream& stream, Precision precision, const Product<Number>& product,
              const Matrix<Number>& b) {
  const auto whole = product_on_device(product, b);
  if (is_on_tensor_cores(precision))
    return on_tensor_cores<Number>(stream,
                                   [&](const auto& there) { there.multiply(stream, whole); });
  if constexpr (std::is_same_v<Number, float>)
    if (stream.device()) return kernels_of(stream)->multiply(stream, whole);
  if constexpr (std::is_same_v<Number, Float16>)
    assert(false && "the cores have no such product");
  else
    cpu::multiply(stream, product, b);
}

/// Returns an operand in the type in which it is multiplied.
Tensor in_factors(Stream& stream, const Tensor& operand, Precision precision) {
  assert(operand.dtype() == facts_of(precision).operands);
  return as_type(stream, operand, facts_of(precision).factors);
}

template <class Number>
cpu::Panels<Number> panels_of(const Tensor& packed) {
  return {static_cast<const cpu::Unit<Number>*>(packed.raw()),
          packed.shape()[1] * cpu::panel_columns};
}

enum class Way : std::uint8_t { forward, back };

/// The initial values of sums; null: zeros.
struct Start {
  const float* numbers = nullptr;
  std::int64_t stride = 0;  // Between rows; 0: all rows start with the same row.
};

/// y = start + x w, or start + x w^T on the way back. If the cores compute for a device, `start`
/// must be null or a single row.
void go_through(Stream& stream, const PackedLinear& w, Way way, const Tensor& x, Start start,
                Tensor& y) {
  const auto& shape = w.shape();
  const std::int64_t rows = y.shape().rows();
  const bool is_back = way == Way::back;
  const std::int64_t depth = is_back ? shape.outputs : shape.inputs;
  const std::int64_t columns = is_back ? shape.inputs : shape.outputs;
  assert(x.count() == rows * depth && y.count() == rows * columns);
  const auto maker = maker_of(stream, shape.precision);
  if (maker == Maker::cores_for_device) {
    assert(start.stride == 0);
    OnCores on(stream);
    Tensor made = on.out(y);
    go_through(on.cores(), w, way, on.in(x), {on.in(start.numbers, columns)}, made);
    return on.take_back();
  }
  const Tensor factor = in_factors(stream, x, shape.precision);
  const Tensor& held = is_back ? w.backward() : w.forward();
  with_factors(shape.precision, [&]<class Number>(Number) {
    Product<Number> product{.rows = rows,
                            .columns = columns,
                            .depth = depth,
                            .a = {factor.data<Number>(), depth, Order::by_row},
                            .start = start.numbers,
                            .start_stride = start.stride,
                            .c_stride = columns,
                            .sums = sums_of(shape.precision)};
    const bool is_rounded = y.dtype() != DType::f32;
    if (!is_rounded) product.c = y.f32();
    if constexpr (!std::is_same_v<Number, Float16>)
      if (maker == Maker::cores) return cpu::multiply(stream, product, panels_of<Number>(held));
    auto lying = inputs_by_outputs(shape, held.data<Number>());
    if (is_back) lying = lying.transposed();
    if constexpr (!std::is_same_v<Number, float>)
      if (is_rounded)
        return on_tensor_cores<Number>(stream, [&](const auto& there) {
          there.multiply_and_round(stream, product_on_device(product, lying), y.data<Number>());
        });
    multiply(stream, shape.precision, product, lying);
  });
}

template <class Number>
struct WeightGradient {
  Product<Number> product;
  Matrix<Number> b;
};
/// Describes dw = start + x^T dy as a product in the layout of the weights.
template <class Number>
WeightGradient<Number> weight_gradient_of(const LinearShape& shape, const Number* x,
                                          const Number* dy, const float* start, float* dw,
                                          std::int64_t rows) {
  std::int64_t x_columns = shape.inputs, dy_columns = shape.outputs;
  if (shape.layout == WeightLayout::out_in) {
    std::swap(x, dy);
    std::swap(x_columns, dy_columns);
  }
  return {.product = {.rows = x_columns,
                      .columns = dy_columns,
                      .depth = rows,
                      .a = {x, x_columns, Order::by_column},
                      .start = start,
                      .start_stride = dy_columns,
                      .c = dw,
                      .c_stride = dy_columns,
                      .sums = sums_of(shape.precision)},
          .b = {dy, dy_columns, Order::by_row}};
}

/// dw = start + x^T dy; without a start, dw = x^T dy.
void weight_gradient(Stream& stream, const LinearShape& shape, const Tensor& x, const Tensor& dy,
                     const float* start, float* dw, std::int64_t rows) {
  assert(x.count() == rows * shape.inputs && dy.count() == rows * shape.outputs);
  if (maker_of(stream, shape.precision) == Maker::cores_for_device) {
    OnCores on(stream);
    const std::int64_t count = shape.inputs * shape.outputs;
    float* sum = start ? on.in_and_out(dw, count) : on.out(dw, count);
    weight_gradient(on.cores(), shape, on.in(x), on.in(dy), start ? sum : nullptr, sum, rows);
    return on.take_back();
  }
  const Tensor from = in_factors(stream, x, shape.precision),
               back = in_factors(stream, dy, shape.precision);
  with_factors(shape.precision, [&]<class Number>(Number) {
    const auto made =
        weight_gradient_of(shape, from.data<Number>(), back.data<Number>(), start, dw, rows);
    multiply(stream, shape.precision, made.product, made.b);
  });
}

}  // namespace

Tensor as_operand(Stream& stream, const Tensor& numbers, Precision precision) {
  const DType type = facts_of(precision).operands;
  if (numbers.dtype() == type) return numbers;
  if (maker_of(stream, precision) != Maker::cores_for_device) return as_type(stream, numbers, type);
  OnCores on(stream);
  return as_type(on.cores(), on.in(numbers), type);
}

LinearGradient linear_gradient(Stream& stream, Tensor dy, Precision precision) {
  Tensor operand = as_operand(stream, dy, precision);
  Tensor for_bias = is_on_tensor_cores(precision) ? operand : std::move(dy);
  return {.operand = std::move(operand), .for_bias = std::move(for_bias)};
}

void linear_forward(Stream& stream, const PackedLinear& w, const Tensor& x, const float* bias,
                    Tensor& y) {
  go_through(stream, w, Way::forward, x, {bias}, y);
}

void linear_backward_input(Stream& stream, const PackedLinear& w, const Tensor& dy, Tensor& dx) {
  go_through(stream, w, Way::back, dy, {}, dx);
}

void linear_add_backward_input(Stream& stream, const PackedLinear& w, const Tensor& dy,
                               Tensor& dx) {
  if (is_on_tensor_cores(w.shape().precision))
    return go_through(stream, w, Way::back, dy, {dx.f32(), w.shape().inputs}, dx);
  Tensor added = stream.make(dx.shape());
  linear_backward_input(stream, w, dy, added);
  accumulate(stream, dx.f32(), added.f32(), dx.count());
}

void linear_backward_weight(Stream& stream, const LinearShape& shape, const Tensor& x,
                            const Tensor& dy, float* dw, std::int64_t rows) {
  weight_gradient(stream, shape, x, dy, dw, dw, rows);
}

void linear_weight_gradient(Stream& stream, const LinearShape& shape, const Tensor& x,
                            const Tensor& dy, float* dw, std::int64_t rows) {
  weight_gradient(stream, shape, x, dy, nullptr, dw, rows);
}

void bias_backward(Stream& stream, const float* dy, float* db, std::int64_t rows,
                   std::int64_t columns) {
  if (const auto* there = kernels_of(stream))
    return there->bias_backward(stream, dy, db, rows, columns);
  cpu::for_pieces(stream, columns, cpu::columns_at_once,
                  [=](std::int64_t first, std::int64_t size) {
                    cpu::add_rows(dy + first, columns, db + first, rows, size);
                  });
}

void linear_backward_parameters(Stream& stream, const LinearShape& shape, const Tensor& x,
                                const LinearGradient& dy, const float* start, float* dw,
                                float* db) {
  const std::int64_t rows = x.shape().rows();
  const DType type = activation_type(shape.precision);
  if (type == DType::f32) {
    weight_gradient(stream, shape, x, dy.operand, start, dw, rows);
    return bias_backward(stream, dy.for_bias.f32(), db, rows, shape.outputs);
  }
  assert(x.count() == rows * shape.inputs && dy.operand.count() == rows * shape.outputs);
  on_tensor_cores(stream, type, [&]<class Number>(const TensorCoreKernels<Number>& there) {
    const auto made =
        weight_gradient_of(shape, x.data<Number>(), dy.operand.data<Number>(), start, dw, rows);
    there.multiply_and_add_up(stream, product_on_device(made.product, made.b),
                              shape.layout == WeightLayout::out_in ? Factor::a : Factor::b, db);
  });
}

void matmul(Stream& stream, Transpose transpose, const float* a, const float* b, float* c,
            std::int64_t rows, std::int64_t columns, std::int64_t inner) {
  Matrix<float> first{a, inner, Order::by_row}, second{b, columns, Order::by_row};
  switch (transpose) {
    case Transpose::none:
      break;
    case Transpose::first:
      first = {a, rows, Order::by_column};
      break;
    case Transpose::second:
      second = {b, inner, Order::by_column};
      break;
  }
  multiply(stream, Precision::fp32,
           Product<float>{.rows = rows,
                          .columns = columns,
                          .depth = inner,
                          .a = first,
                          .c = c,
                          .c_stride = columns},
           second);
}

}  // namespace troupe::kernels
