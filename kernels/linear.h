#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "kernels/precision.h"

namespace troupe::kernels {

/// The outermost dimension of a stored matrix: torch's Linear stores [out, in], GPT-2's Conv1D [in,
/// out].
enum class WeightLayout : std::uint8_t { out_in, in_out };

struct LinearShape {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  WeightLayout layout = WeightLayout::out_in;
  Precision precision = Precision::fp32;
};

/// A layer's matrix in the layout that products need. It is packed once per version of the weights
/// and used by every micro-batch in both passes.
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

/// Returns numbers as an operand of products: in fp32 the tensor itself, else a rounded copy that
/// lies where the products are computed. A layer that needs an operand in two products converts it
/// once.
Tensor as_operand(Stream& stream, const Tensor& numbers, Precision precision);

/// The gradient of a linear layer's output, in the forms that its users need.
struct LinearGradient {
  Tensor operand;   // For the gradients of weights and input.
  Tensor for_bias;  // For the bias: dy as it came. On tensor cores the operand, so that nothing
                    // else need be kept.
};
LinearGradient linear_gradient(Stream& stream, Tensor dy, Precision precision);

/// y = x w + bias, for each row of x. `x` is an operand of the matrix's precision; `bias` may be
/// null. The bits of y depend on shapes and numbers alone, not on the stream's threads. y is in
/// fp32 or in the precision's activation_type(): tensor cores round it when they write it, and may
/// round the bias.
void linear_forward(Stream& stream, const PackedLinear& w, const Tensor& x, const float* bias,
                    Tensor& y);

/// dx = dy w^T. `dy` is an operand of the matrix's precision; dx may have each type that y may.
void linear_backward_input(Stream& stream, const PackedLinear& w, const Tensor& dy, Tensor& dx);
/// dx += dy w^T, with dx in fp32. The cores sum the product by itself and then add it; tensor cores
/// start their sums with dx.
void linear_add_backward_input(Stream& stream, const PackedLinear& w, const Tensor& dy, Tensor& dx);

/// dw += x^T dy in the layout of the weights; `x` and `dy` are operands of the shape's precision.
void linear_backward_weight(Stream& stream, const LinearShape& shape, const Tensor& x,
                            const Tensor& dy, float* dw, std::int64_t rows);
/// dw = x^T dy, with the bits of a sum that starts with zeros. Does not read dw.
void linear_weight_gradient(Stream& stream, const LinearShape& shape, const Tensor& x,
                            const Tensor& dy, float* dw, std::int64_t rows);

/// db[c] += the sum over rows of dy[r, c], in the order of kernels/row_sums.h.
void bias_backward(Stream& stream, const float* dy, float* db, std::int64_t rows,
                   std::int64_t columns);

/// Computes both gradients: dw = start + x^T dy, where `start` is dw or null for zeros, and db +=
/// the sum of the rows of dy. Gives the bits of the functions above, except for 16 bits on tensor
/// cores: they sum rows in their own order, and within the product if they can.
void linear_backward_parameters(Stream& stream, const LinearShape& shape, const Tensor& x,
                                const LinearGradient& dy, const float* start, float* dw, float* db);

/// c = a b in fp32, or with a transposed operand. Packs nothing; for products outside layers.
enum class Transpose : std::uint8_t { none, first, second };
void matmul(Stream& stream, Transpose transpose, const float* a, const float* b, float* c,
            std::int64_t rows, std::int64_t columns, std::int64_t inner);

}  // namespace troupe::kernels
