#include "kernels/experts.h"

#include <algorithm>
#include <cassert>
#include <type_traits>
#include <vector>

#include "kernels/cpu/parts/product.h"
#include "kernels/device_kernels.h"
#include "kernels/on_cores.h"
#include "kernels/products/linear_parts.h"
#include "kernels/rounding.h"

namespace troupe::kernels {
namespace {

using cpu::Order;
using cpu::Product;

// A thread computes at most so many rows and columns of a product at once.
constexpr std::int64_t rows_at_once = 128;
constexpr std::int64_t columns_at_once = 512;

std::int64_t pieces(std::int64_t count, std::int64_t grain) { return (count + grain - 1) / grain; }

/// The rows of an expert that one piece of work computes.
struct RowsOfExpert {
  std::int64_t expert = 0, first = 0, rows = 0;
};

/// Returns piece i of the rows, which are cut at the bounds of experts; without rows if there are
/// fewer pieces.
RowsOfExpert piece_of_rows(const std::int32_t* bounds, std::int64_t experts, std::int64_t i) {
  for (std::int64_t e = 0; e < experts; ++e) {
    const std::int64_t rows = bounds[e + 1] - bounds[e];
    const std::int64_t count = pieces(rows, rows_at_once);
    if (i < count)
      return {e, bounds[e] + i * rows_at_once, std::min(rows_at_once, rows - i * rows_at_once)};
    i -= count;
  }
  return {};
}

/// Calls use(number) with a number of the type of the factors on cores.
template <class Use>
void with_factors_on_cores(Precision precision, Use use) {
  with_factors(precision, [&]<class Number>(Number number) {
    if constexpr (std::is_same_v<Number, Float16>)
      assert(false && "the cores have no such product");
    else
      use(number);
  });
}

enum class To : std::uint8_t { outputs, inputs };

/// Multiplies on the cores. How many rows an expert has is read by the pieces of work themselves,
/// so a rehearsal, which computes nothing, reads nothing.
void multiply_on_cores(Stream& stream, ExpertMatrices w, To to, const std::int32_t* bounds,
                       const Tensor& x, Tensor& y) {
  const auto& shape = w.front()->shape();
  const bool is_back = to == To::inputs;
  const std::int64_t depth = is_back ? shape.outputs : shape.inputs;
  const std::int64_t columns = is_back ? shape.inputs : shape.outputs;
  const auto experts = static_cast<std::int64_t>(w.size());
  const std::int64_t across = pieces(columns, columns_at_once);
  const std::int64_t down = pieces(y.shape().rows(), rows_at_once) + experts;
  const Tensor factor = as_type(stream, x, facts_of(shape.precision).factors);
  with_factors_on_cores(shape.precision, [&]<class Number>(Number) {
    const Number* const from = factor.data<Number>();
    float* const made = y.f32();
    stream.for_each(down * across, [&](std::int64_t i) {
      const auto piece = piece_of_rows(bounds, experts, i / across);
      if (piece.rows == 0) return;
      const PackedLinear& matrix = *w[static_cast<std::size_t>(piece.expert)];
      const Tensor& held = is_back ? matrix.backward() : matrix.forward();
      const std::int64_t stride = held.shape()[1] * cpu::panel_columns;
      const std::int64_t column = i % across * columns_at_once;
      cpu::multiply(Product<Number>{.rows = piece.rows,
                                    .columns = std::min(columns_at_once, columns - column),
                                    .depth = depth,
                                    .a = {from + piece.first * depth, depth, Order::by_row},
                                    .c = made + piece.first * columns + column,
                                    .c_stride = columns,
                                    .sums = sums_of(shape.precision)},
                    cpu::Panels<Number>{static_cast<const cpu::Unit<Number>*>(held.raw()) +
                                            column / cpu::panel_columns * stride,
                                        stride});
    });
  });
}

void multiply_experts(Stream& stream, ExpertMatrices w, To to, const Tensor& bounds,
                      const Tensor& x, Tensor& y) {
  const auto& shape = w.front()->shape();
  const bool is_back = to == To::inputs;
  switch (maker_of(stream, shape.precision)) {
    case Maker::cores:
      return multiply_on_cores(stream, w, to, bounds.data<std::int32_t>(), x, y);
    case Maker::cores_for_device: {
      OnCores on(stream);
      Tensor made = on.out(y);
      const Tensor here = on.in(bounds);
      multiply_on_cores(on.cores(), w, to, here.data<std::int32_t>(), on.in(x), made);
      return on.take_back();
    }
    case Maker::device:
      break;
  }
  const Tensor factor = as_type(stream, x, facts_of(shape.precision).factors);
  with_factors(shape.precision, [&]<class Number>(Number) {
    std::vector<const Number*> matrices;
    for (const PackedLinear* matrix : w)
      matrices.push_back((is_back ? matrix->backward() : matrix->forward()).data<Number>());
    auto lying = inputs_by_outputs(shape, matrices.front());
    if (is_back) lying = lying.transposed();
    const auto strides = on_device(lying);
    kernels_of(stream)
        ->experts<Number>(is_on_tensor_cores(shape.precision))
        .multiply(stream,
                  {.rows = y.shape().rows(),
                   .columns = is_back ? shape.inputs : shape.outputs,
                   .depth = is_back ? shape.outputs : shape.inputs,
                   .bounds = bounds.data<std::int32_t>(),
                   .x = factor.data<Number>(),
                   .row_stride = strides.row_stride,
                   .column_stride = strides.column_stride,
                   .y = y.f32()},
                  matrices);
  });
}

/// The factors of dw = a^T b, in the layout of the weights.
struct GradientFactors {
  const Tensor *a, *b;
  std::int64_t a_columns, b_columns;
};
GradientFactors factors_of(const LinearShape& shape, const Tensor& x, const Tensor& dy) {
  if (shape.layout == WeightLayout::out_in) return {&dy, &x, shape.outputs, shape.inputs};
  return {&x, &dy, shape.inputs, shape.outputs};
}

void gradients_on_cores(Stream& stream, const LinearShape& shape,
                        std::span<const ExpertGradient> gradients, const std::int32_t* bounds,
                        const Tensor& x, const Tensor& dy) {
  constexpr std::int64_t side = 512;
  const DType type = facts_of(shape.precision).factors;
  const Tensor of_x = as_type(stream, x, type), of_dy = as_type(stream, dy, type);
  const auto factors = factors_of(shape, of_x, of_dy);
  const std::int64_t rows = factors.a_columns, columns = factors.b_columns;
  const std::int64_t across = pieces(columns, side), tiles = pieces(rows, side) * across;
  with_factors_on_cores(shape.precision, [&]<class Number>(Number) {
    const Number* const a = factors.a->template data<Number>();
    const Number* const b = factors.b->template data<Number>();
    stream.for_each(static_cast<std::int64_t>(gradients.size()) * tiles, [&](std::int64_t i) {
      const auto& gradient = gradients[static_cast<std::size_t>(i / tiles)];
      if (!gradient.dw) return;
      const std::int64_t first = bounds[i / tiles], depth = bounds[i / tiles + 1] - first;
      const std::int64_t row = i % tiles / across * side, column = i % across * side;
      const std::int64_t height = std::min(side, rows - row),
                         width = std::min(side, columns - column);
      float* const dw = gradient.dw + row * columns + column;
      if (depth == 0) {
        for (std::int64_t r = 0; gradient.begins && r < height; ++r)
          std::fill_n(dw + r * columns, width, 0.0f);
        return;
      }
      cpu::multiply(stream.memory(),
                    Product<Number>{.rows = height,
                                    .columns = width,
                                    .depth = depth,
                                    .a = {a + first * rows + row, rows, Order::by_column},
                                    .start = gradient.begins ? nullptr : dw,
                                    .start_stride = columns,
                                    .c = dw,
                                    .c_stride = columns,
                                    .sums = sums_of(shape.precision)},
                    cpu::Matrix<Number>{b + first * columns + column, columns, Order::by_row},
                    x.shape().rows());
    });
  });
}

}  // namespace

void experts_forward(Stream& stream, ExpertMatrices w, const Tensor& bounds, const Tensor& x,
                     Tensor& y) {
  multiply_experts(stream, w, To::outputs, bounds, x, y);
}

void experts_backward_input(Stream& stream, ExpertMatrices w, const Tensor& bounds,
                            const Tensor& dy, Tensor& dx) {
  multiply_experts(stream, w, To::inputs, bounds, dy, dx);
}

void experts_backward_weight(Stream& stream, const LinearShape& shape,
                             std::span<const ExpertGradient> gradients, const Tensor& bounds,
                             const Tensor& x, const Tensor& dy) {
  switch (maker_of(stream, shape.precision)) {
    case Maker::cores:
      return gradients_on_cores(stream, shape, gradients, bounds.data<std::int32_t>(), x, dy);
    case Maker::cores_for_device: {
      OnCores on(stream);
      const Tensor here = on.in(bounds);
      std::vector<ExpertGradient> there;
      const std::int64_t count = shape.inputs * shape.outputs;
      for (const auto& [dw, begins] : gradients)
        there.push_back({!dw      ? nullptr
                         : begins ? on.out(dw, count)
                                  : on.in_and_out(dw, count),
                         begins});
      gradients_on_cores(on.cores(), shape, there, here.data<std::int32_t>(), on.in(x), on.in(dy));
      return on.take_back();
    }
    case Maker::device:
      break;
  }
  const DType type = facts_of(shape.precision).factors;
  const Tensor of_x = as_type(stream, x, type), of_dy = as_type(stream, dy, type);
  const auto factors = factors_of(shape, of_x, of_dy);
  with_factors(shape.precision, [&]<class Number>(Number) {
    kernels_of(stream)
        ->experts<Number>(is_on_tensor_cores(shape.precision))
        .gradients(stream,
                   {.a_columns = factors.a_columns,
                    .b_columns = factors.b_columns,
                    .rows = x.shape().rows(),
                    .bounds = bounds.data<std::int32_t>(),
                    .a = factors.a->template data<Number>(),
                    .b = factors.b->template data<Number>()},
                   gradients);
  });
}

}  // namespace troupe::kernels
