#include "kernels/linear.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "kernels/copy.h"
#include "kernels/cpu/features.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/rows.h"
#include "kernels/device_kernels.h"
#include "kernels/float16.h"
#include "kernels/on_cores.h"

namespace troupe::kernels {
namespace {

using cpu::Matrix;
using cpu::Order;
using cpu::Product;
using cpu::Unit;

constexpr DType type_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return DType::f32;
    case Precision::fp16:
      return DType::f16;
    case Precision::bf16_pairs:
    case Precision::bf16_blocks:
    case Precision::bf16_gpu:
      return DType::bf16;
  }
  return DType::f32;
}

constexpr cpu::SumOrder sums_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::fp16:
    case Precision::bf16_pairs:
      return cpu::SumOrder::pairs;
    case Precision::bf16_blocks:
      return cpu::SumOrder::blocks;
    case Precision::bf16_gpu:
      return cpu::SumOrder::of_device;
  }
  return cpu::SumOrder::pairs;
}

template <class Number>
Matrix<Number> by_row(const Tensor& numbers, std::int64_t columns) {
  return {numbers.data<Number>(), columns, Order::by_row};
}

template <class Number>
Matrix<Number> transposed(Matrix<Number> matrix) {
  matrix.order = matrix.order == Order::by_row ? Order::by_column : Order::by_row;
  return matrix;
}

/// The weights as [inputs, outputs], however they are stored.
template <class Number>
Matrix<Number> inputs_by_outputs(const LinearShape& shape, const Number* weight) {
  switch (shape.layout) {
    case WeightLayout::in_out:
      return {weight, shape.outputs, Order::by_row};
    case WeightLayout::out_in:
      return {weight, shape.inputs, Order::by_column};
  }
  return {};
}

constexpr std::int64_t grain = 65536;

void round_all(Stream& stream, const float* numbers, BFloat16* rounded, std::int64_t count) {
  if (const auto* there = kernels_of(stream))
    return there->round_to_bf16(stream, numbers, rounded, count);
  stream.for_each((count + grain - 1) / grain, [=](std::int64_t i) {
    cpu::round_to_bf16(numbers + i * grain, rounded + i * grain,
                       std::min(grain, count - i * grain));
  });
}

/// Weights that were not packed.
template <class Number>
Matrix<Number> stored(const LinearShape& shape, const Tensor& weight) {
  return inputs_by_outputs(shape, weight.data<Number>());
}

void widen_all(Stream& stream, const BFloat16* rounded, float* numbers, std::int64_t count) {
  if (const auto* there = kernels_of(stream))
    return there->widen_bf16(stream, rounded, numbers, count);
  stream.for_each((count + grain - 1) / grain, [=](std::int64_t i) {
    for (std::int64_t n = i * grain; n < std::min(count, (i + 1) * grain); ++n)
      numbers[n] = rounded[n].to_float();
  });
}

template <class Number>
Tensor pack(Stream& stream, const Matrix<Number>& matrix, std::int64_t depth,
            std::int64_t columns) {
  const std::int64_t units = cpu::units<Number>(depth), panels = cpu::panel_count(columns);
  Tensor packed = stream.make({panels, units, cpu::panel_columns * cpu::UnitOf<Number>::numbers},
                              dtype_of<Number>);
  auto* data = static_cast<Unit<Number>*>(packed.raw());
  const std::int64_t stride = units * cpu::panel_columns;
  stream.for_each(panels, [&](std::int64_t panel) {
    const std::int64_t first = panel * cpu::panel_columns;
    cpu::pack_panels(matrix.from(0, first), depth, std::min(cpu::panel_columns, columns - first),
                     data + panel * stride, stride);
  });
  return packed;
}

Tensor rounded_copy_of(Stream& stream, const float* numbers, const Shape& shape) {
  Tensor rounded = stream.make(shape, DType::bf16);
  round_all(stream, numbers, rounded.data<BFloat16>(), shape.count());
  return rounded;
}

Tensor copy_of(Stream& stream, const float* numbers, std::int64_t count) {
  Tensor copy = stream.make({count});
  copy_rows(stream, {numbers, 0}, {copy.f32(), 0}, 1, count);
  return copy;
}

/// An operand in fp16 or fp32 as products take it. It is widened anew for each: that costs little
/// beside the product, and in between it takes half the memory.
Tensor in_floats(Stream& stream, const Tensor& operand, Precision precision) {
  assert(operand.dtype() == type_of(precision));
  if (precision == Precision::fp32) return operand;
  Tensor wide = stream.make(operand.shape());
  widen_f16(stream, operand.data<Float16>(), wide.f32(), operand.count());
  return wide;
}

Tensor rounded_to_f16(Stream& stream, const float* numbers, const Shape& shape) {
  Tensor rounded = stream.make(shape, DType::f16);
  round_to_f16(stream, numbers, rounded.data<Float16>(), rounded.count());
  return rounded;
}

template <class Number>
cpu::Panels<Number> panels_of(const Tensor& packed) {
  return {static_cast<const Unit<Number>*>(packed.raw()), packed.shape()[1] * cpu::panel_columns};
}

/// y = x w + bias, where w is a matrix of inputs x outputs, packed or not.
template <class Number, class Factor>
void product(Stream& stream, const Factor& w, const Tensor& x, const float* bias, float* y,
             const LinearShape& shape, std::int64_t rows) {
  multiply(stream,
           Product<Number>{.rows = rows,
                           .columns = shape.outputs,
                           .depth = shape.inputs,
                           .a = by_row<Number>(x, shape.inputs),
                           .start = bias,
                           .c = y,
                           .c_stride = shape.outputs,
                           .sums = sums_of(shape.precision)},
           w);
}

/// dw = start + x^T dy; without a start, x^T dy.
template <class Number>
void weight_gradient(Stream& stream, const LinearShape& shape, const Tensor& x, const Tensor& dy,
                     const float* start, float* dw, std::int64_t rows) {
  Matrix<Number> a = by_row<Number>(x, shape.inputs), b = by_row<Number>(dy, shape.outputs);
  std::int64_t a_columns = shape.inputs, b_columns = shape.outputs;
  if (shape.layout == WeightLayout::out_in) {
    std::swap(a, b);
    std::swap(a_columns, b_columns);
  }
  multiply(stream,
           Product<Number>{.rows = a_columns,
                           .columns = b_columns,
                           .depth = rows,
                           .a = transposed(a),
                           .start = start,
                           .start_stride = b_columns,
                           .c = dw,
                           .c_stride = b_columns,
                           .sums = sums_of(shape.precision)},
           b);
}

void weight_gradient(Stream& stream, const LinearShape& shape, const Tensor& x, const Tensor& dy,
                     const float* start, float* dw, std::int64_t rows) {
  assert(x.count() == rows * shape.inputs && dy.count() == rows * shape.outputs);
  switch (shape.precision) {
    case Precision::fp32:
    case Precision::fp16:
      return weight_gradient<float>(stream, shape, in_floats(stream, x, shape.precision),
                                    in_floats(stream, dy, shape.precision), start, dw, rows);
    case Precision::bf16_pairs:
    case Precision::bf16_blocks:
      if (stream.device()) {
        OnCores on(stream);
        const std::int64_t count = shape.inputs * shape.outputs;
        float* sum = start ? on.in_and_out(dw, count) : on.out(dw, count);
        weight_gradient(on.cores(), shape, on.in(x), on.in(dy), start ? sum : nullptr, sum, rows);
        return on.take_back();
      }
      return weight_gradient<BFloat16>(stream, shape, x, dy, start, dw, rows);
    case Precision::bf16_gpu:
      return weight_gradient<BFloat16>(stream, shape, x, dy, start, dw, rows);
  }
}

}  // namespace

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::fp16:
      return "fp16";
    case Precision::bf16_pairs:
      return "bf16-pairs";
    case Precision::bf16_blocks:
      return "bf16-blocks";
    case Precision::bf16_gpu:
      return "bf16-gpu";
  }
  return {};
}

Precision fastest_bf16() {
  return cpu::has_bf16_tiles() ? Precision::bf16_blocks : Precision::bf16_pairs;
}

bool has_bf16_products() { return cpu::has_bf16_tiles() || cpu::has_bf16_pairs(); }

PackedLinear::PackedLinear(Stream& stream, const LinearShape& shape, const float* weight)
    : shape_(shape) {
  const auto pack_both = [&](const auto& w) {
    forward_ = pack(stream, w, shape.inputs, shape.outputs);
    backward_ = pack(stream, transposed(w), shape.outputs, shape.inputs);
  };
  const std::int64_t count = shape.inputs * shape.outputs;
  switch (shape.precision) {
    case Precision::fp32:
      // A device reads it as it lies; a copy, since the weights may be written to before long.
      if (stream.device())
        forward_ = backward_ = copy_of(stream, weight, count);
      else
        pack_both(inputs_by_outputs(shape, weight));
      break;
    case Precision::fp16: {
      const Tensor wide =
          in_floats(stream, rounded_to_f16(stream, weight, {count}), shape.precision);
      if (stream.device())
        forward_ = backward_ = wide;
      else
        pack_both(inputs_by_outputs(shape, wide.f32()));
      break;
    }
    case Precision::bf16_pairs:
    case Precision::bf16_blocks: {
      if (stream.device()) {
        OnCores on(stream);
        *this = PackedLinear(on.cores(), shape, on.in(weight, count));
        break;
      }
      const Tensor rounded = rounded_copy_of(stream, weight, {count});
      pack_both(inputs_by_outputs(shape, rounded.data<BFloat16>()));
      break;
    }
    case Precision::bf16_gpu:
      forward_ = backward_ = rounded_copy_of(stream, weight, {count});
      break;
  }
}

Tensor as_operand(Stream& stream, const Tensor& numbers, Precision precision) {
  const DType type = type_of(precision);
  if (numbers.dtype() == type) return numbers;
  if (is_bf16(precision) && stream.device() && !is_on_tensor_cores(precision)) {
    OnCores on(stream);
    return as_operand(on.cores(), on.in(numbers), precision);
  }
  return as_type(stream, numbers, type);
}

Tensor as_type(Stream& stream, const Tensor& numbers, DType type) {
  if (numbers.dtype() == type) return numbers;
  if (type == DType::bf16) return rounded_copy_of(stream, numbers.f32(), numbers.shape());
  if (type == DType::f16) return rounded_to_f16(stream, numbers.f32(), numbers.shape());
  assert(type == DType::f32 && numbers.dtype() == DType::bf16);
  Tensor wide = stream.make(numbers.shape());
  widen_all(stream, numbers.data<BFloat16>(), wide.f32(), numbers.count());
  return wide;
}

void linear_forward(Stream& stream, const PackedLinear& w, const Tensor& x, const float* bias,
                    float* y, std::int64_t rows) {
  assert(x.count() == rows * w.shape().inputs);
  switch (w.shape().precision) {
    case Precision::fp32:
    case Precision::fp16: {
      const Tensor wide = in_floats(stream, x, w.shape().precision);
      if (stream.device())
        return product<float>(stream, stored<float>(w.shape(), w.forward()), wide, bias, y,
                              w.shape(), rows);
      return product<float>(stream, panels_of<float>(w.forward()), wide, bias, y, w.shape(), rows);
    }
    case Precision::bf16_pairs:
    case Precision::bf16_blocks:
      if (stream.device()) {
        OnCores on(stream);
        linear_forward(on.cores(), w, on.in(x), on.in(bias, w.shape().outputs),
                       on.out(y, rows * w.shape().outputs), rows);
        return on.take_back();
      }
      return product<BFloat16>(stream, panels_of<BFloat16>(w.forward()), x, bias, y, w.shape(),
                               rows);
    case Precision::bf16_gpu:
      return product<BFloat16>(stream, stored<BFloat16>(w.shape(), w.forward()), x, bias, y,
                               w.shape(), rows);
  }
}

void linear_backward_input(Stream& stream, const PackedLinear& w, const Tensor& dy, float* dx,
                           std::int64_t rows) {
  assert(dy.count() == rows * w.shape().outputs);
  LinearShape back = w.shape();
  std::swap(back.inputs, back.outputs);
  switch (back.precision) {
    case Precision::fp32:
    case Precision::fp16: {
      const Tensor wide = in_floats(stream, dy, back.precision);
      if (stream.device())
        return product<float>(stream, transposed(stored<float>(w.shape(), w.backward())), wide,
                              nullptr, dx, back, rows);
      return product<float>(stream, panels_of<float>(w.backward()), wide, nullptr, dx, back, rows);
    }
    case Precision::bf16_pairs:
    case Precision::bf16_blocks:
      if (stream.device()) {
        OnCores on(stream);
        linear_backward_input(on.cores(), w, on.in(dy), on.out(dx, rows * back.outputs), rows);
        return on.take_back();
      }
      return product<BFloat16>(stream, panels_of<BFloat16>(w.backward()), dy, nullptr, dx, back,
                               rows);
    case Precision::bf16_gpu:
      return product<BFloat16>(stream, transposed(stored<BFloat16>(w.shape(), w.backward())), dy,
                               nullptr, dx, back, rows);
  }
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
  constexpr std::int64_t width = 512;
  stream.for_each((columns + width - 1) / width, [&](std::int64_t i) {
    const std::int64_t first = i * width;
    cpu::add_rows(dy + first, columns, db + first, rows, std::min(width, columns - first));
  });
}

void bias_backward(Stream& stream, const Tensor& dy, float* db) {
  const std::int64_t rows = dy.shape().rows(), columns = dy.shape().last();
  if (dy.dtype() == DType::f32) return bias_backward(stream, dy.f32(), db, rows, columns);
  on_tensor_cores(stream, [&](const TensorCoreKernels<BFloat16>& there) {
    there.bias_backward(stream, dy.data<BFloat16>(), db, rows, columns);
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
  multiply(stream,
           Product<float>{.rows = rows,
                          .columns = columns,
                          .depth = inner,
                          .a = first,
                          .c = c,
                          .c_stride = columns},
           second);
}

}  // namespace troupe::kernels
