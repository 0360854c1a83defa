#pragma once

#include "models/layer.h"

namespace troupe::models {

/// A product with a matrix, as linear layers, attention and gated layers do it. Tensors that go
/// into a product are operands (kernels::as_operand) of the pass's precision.
class Projection {
 public:
  explicit Projection(Parameter matrix);

  const Parameter& parameter() const { return matrix_; }
  std::int64_t inputs() const { return inputs_; }
  /// The same shape with another last dimension.
  Shape output(Shape shape) const;
  Work work(const Shape& input) const { return product_work(input.rows(), inputs_, outputs_); }

  /// y = x w + bias; `bias` may be null. In the precision's activation_type().
  Tensor forward(const Pass& pass, const Weight& w, const Tensor& x, const float* bias) const;
  /// dx = dy w^T, likewise.
  Tensor backward_input(const Pass& pass, const Weight& w, const Tensor& dy) const;
  /// dx += dy w^T, in fp32; an empty dx is made.
  void add_backward_input(const Pass& pass, const Weight& w, const Tensor& dy, Tensor& dx) const;
  /// dw += x^T dy; an empty dw is made, and begins with zero.
  void backward_weight(const Pass& pass, const Tensor& x, const Tensor& dy, Tensor& dw) const;
  /// The same, and db += the sum of the rows of dy.
  void backward_parameters(const Pass& pass, const Tensor& x, const kernels::LinearGradient& dy,
                           Tensor& dw, Tensor& db) const;

 private:
  Tensor new_gradient(Stream& stream) const;

  Parameter matrix_;
  std::int64_t inputs_ = 0;
  std::int64_t outputs_ = 0;
};

}  // namespace troupe::models
