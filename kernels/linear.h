#pragma once

#include <cstdint>
#include <string_view>

#include "core/stream.h"
#include "core/tensor.h"

namespace troupe::kernels {

/// Which dimension of a stored matrix is the outermost: torch's Linear keeps [out, in], GPT-2's
/// Conv1D keeps [in, out].
enum class WeightLayout : std::uint8_t { out_in, in_out };

/// In what the two operands of a product are, and for bf16 in which order its terms are added
/// (kernels/cpu/product.h). It accumulates in fp32 whatever they are. Any processor can do all but
/// bf16_gpu, whose order is that of NVIDIA's libraries, and in which attention and convolutions
/// have operands and results of bf16 as well. A product in fp16 has the bits of one in fp32 of the
/// rounded operands; on processors it is no faster.
enum class Precision : std::uint8_t { fp32, fp16, bf16_pairs, bf16_blocks, bf16_gpu };

std::string_view to_string(Precision precision);  // As a configuration names it.
constexpr bool is_bf16(Precision precision) {
  return precision == Precision::bf16_pairs || precision == Precision::bf16_blocks ||
         precision == Precision::bf16_gpu;
}
constexpr bool is_on_tensor_cores(Precision precision) { return precision == Precision::bf16_gpu; }

/// The type of what goes into attention and convolutions, and comes out of them.
constexpr DType activation_type(Precision precision) {
  return is_on_tensor_cores(precision) ? DType::bf16 : DType::f32;
}

/// The bf16 products that this processor is fastest at.
Precision fastest_bf16();

/// Whether it has instructions for them, so that they are faster than fp32.
bool has_bf16_products();

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

/// The same numbers in another type: rounded from fp32, or widened from bf16; the tensor itself
/// where they are of that type.
Tensor as_type(Stream& stream, const Tensor& numbers, DType type);

/// y = x w + bias, for `rows` rows of x. `x` is an operand of the matrix's precision; `bias` may be
/// null. The bits of y depend on shapes and numbers alone, whatever the threads of the stream.
void linear_forward(Stream& stream, const PackedLinear& w, const Tensor& x, const float* bias,
                    float* y, std::int64_t rows);

/// dx = dy w^T. `dy` is an operand of the matrix's precision.
void linear_backward_input(Stream& stream, const PackedLinear& w, const Tensor& dy, float* dx,
                           std::int64_t rows);

/// dw += x^T dy in the layout of the weights; `x` and `dy` are operands of the shape's precision.
void linear_backward_weight(Stream& stream, const LinearShape& shape, const Tensor& x,
                            const Tensor& dy, float* dw, std::int64_t rows);
/// dw = x^T dy: the bits of a sum that begins with zeros, without reading any.
void linear_weight_gradient(Stream& stream, const LinearShape& shape, const Tensor& x,
                            const Tensor& dy, float* dw, std::int64_t rows);

/// db[c] += sum over rows of dy[r, c], in the order of the rows.
void bias_backward(Stream& stream, const float* dy, float* db, std::int64_t rows,
                   std::int64_t columns);
/// The same of a tensor; of one in bf16 in an order of the device's.
void bias_backward(Stream& stream, const Tensor& dy, float* db);

/// c = a b, or with a transposed operand, all fp32 and without packing: for what is not a layer's
/// product.
enum class Transpose : std::uint8_t { none, first, second };
void matmul(Stream& stream, Transpose transpose, const float* a, const float* b, float* c,
            std::int64_t rows, std::int64_t columns, std::int64_t inner);

}  // namespace troupe::kernels
