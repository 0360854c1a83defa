#pragma once

#include "models/layer.h"

namespace troupe::models {

/// A product with a matrix, used by linear layers, attention and gated layers. The tensors that
/// enter a product must be operands (kernels::as_operand) of the pass's precision.
class Projection {
 public:
  explicit Projection(Parameter matrix);

  const Parameter& parameter() const { return matrix_; }
  std::int64_t inputs() const { return inputs_; }
  /// Returns the input shape with `outputs` as its last dimension.
  Shape output(Shape shape) const;
  Work work(const Shape& input) const { return product_work(input.rows(), inputs_, outputs_); }

  /// Returns x w + bias in the precision's activation_type(). `bias` may be null.
  Tensor forward(const Pass& pass, const Weight& w, const Tensor& x, const float* bias) const;
  /// Returns dy w^T in the precision's activation_type().
  Tensor backward_input(const Pass& pass, const Weight& w, const Tensor& dy) const;
  /// Computes dx += dy w^T in fp32. Allocates an empty dx.
  void add_backward_input(const Pass& pass, const Weight& w, const Tensor& dy, Tensor& dx) const;
  /// Computes dw += x^T dy. Allocates an empty dw and starts it at zero.
  void backward_weight(const Pass& pass, const Tensor& x, const Tensor& dy, Tensor& dw) const;
  /// Computes dw as above, and db += the sum of the rows of dy. A frozen matrix needs no dw, and
  /// gets one only if the kernel computes both in one product.
  void backward_parameters(const Pass& pass, const Tensor& x, const kernels::LinearGradient& dy,
                           Tensor& dw, Tensor& db, bool is_matrix_frozen) const;

 private:
  Tensor new_gradient(Stream& stream) const;

  Parameter matrix_;
  std::int64_t inputs_ = 0;
  std::int64_t outputs_ = 0;
};

}  // namespace troupe::models
