#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "kernels/precision.h"

namespace troupe::kernels {

/// Which dimension of a stored matrix is the outermost: torch's Linear keeps [out, in], GPT-2's
/// Conv1D keeps [in, out].
enum class WeightLayout : std::uint8_t { out_in, in_out };

struct LinearShape {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  WeightLayout layout = WeightLayout::out_in;
  Precision precision = Precision::fp32;
};

/// A layer's matrix as the products want it: packed once for each version of the weights, then used
/// by every micro-batch and by both passes.
class PackedLinear {
 public:
  PackedLinear() = default;
  PackedLinear(Stream& stream, const LinearShape& shape, const float* weight);

  const LinearShape& shape() const { return shape_; }
  const Tensor& forward() const { return forward_; }
  const Tensor& backward() const { return backward_; }
  bool empty() const { return forward_.empty(); }

 private:
  LinearShape shape_;
  Tensor forward_;
  Tensor backward_;
};

/// Numbers as an operand of products: the tensor itself for fp32, a rounded copy for the others,
/// which lies where those products are made. A layer that needs an operand in two products makes it
/// once.
Tensor as_operand(Stream& stream, const Tensor& numbers, Precision precision);

/// The gradient of what a linear layer gives, as those want it that take it.
struct LinearGradient {
  Tensor operand;   // For its matrix and its input.
  Tensor for_bias;  // As it came, in fp32 the same tensor. On tensor cores the operand, so that
                    // nothing else need be kept.
};
LinearGradient linear_gradient(Stream& stream, Tensor dy, Precision precision);

/// y = x w + bias, for the rows of x. `x` is an operand of the matrix's precision; `bias` may be
/// null. The bits of y depend on shapes and numbers alone, whatever the threads of the stream. It
/// is in fp32 or in the precision's activation_type(): tensor cores round it where they make it,
/// and the bias may be rounded before.
void linear_forward(Stream& stream, const PackedLinear& w, const Tensor& x, const float* bias,
                    Tensor& y);

/// dx = dy w^T. `dy` is an operand of the matrix's precision; dx is as y is.
void linear_backward_input(Stream& stream, const PackedLinear& w, const Tensor& dy, Tensor& dx);
/// dx += dy w^T, where dx is in fp32: the product is summed up apart, and then added; but on tensor
/// cores its sums begin with dx.
void linear_add_backward_input(Stream& stream, const PackedLinear& w, const Tensor& dy, Tensor& dx);

/// dw += x^T dy in the layout of the weights; `x` and `dy` are operands of the shape's precision.
void linear_backward_weight(Stream& stream, const LinearShape& shape, const Tensor& x,
                            const Tensor& dy, float* dw, std::int64_t rows);
/// dw = x^T dy: the bits of a sum that begins with zeros, without reading any.
void linear_weight_gradient(Stream& stream, const LinearShape& shape, const Tensor& x,
                            const Tensor& dy, float* dw, std::int64_t rows);

/// db[c] += sum over rows of dy[r, c], as kernels/row_sums.h has it.
void bias_backward(Stream& stream, const float* dy, float* db, std::int64_t rows,
                   std::int64_t columns);

/// Both gradients: dw = start + x^T dy, where `start` is dw, or null for zeros, and db += the sum
/// of the rows of dy. These are the bits of the functions above, but on tensor cores, which add up
/// rows in an order of their own, and within the product where they can.
void linear_backward_parameters(Stream& stream, const LinearShape& shape, const Tensor& x,
                                const LinearGradient& dy, const float* start, float* dw, float* db);

/// c = a b, or with a transposed operand, all fp32 and without packing: for what is not a layer's
/// product.
enum class Transpose : std::uint8_t { none, first, second };
void matmul(Stream& stream, Transpose transpose, const float* a, const float* b, float* c,
            std::int64_t rows, std::int64_t columns, std::int64_t inner);

}  // namespace troupe::kernels
