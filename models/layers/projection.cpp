#include "models/layers/projection.h"

#include <utility>

namespace troupe::models {
namespace {

Shape with_last(const Shape& shape, std::int64_t last) {
  Shape other;
  for (int i = 0; i + 1 < shape.rank(); ++i) other.append(shape[i]);
  other.append(last);
  return other;
}

}  // namespace

Projection::Projection(Parameter matrix) : matrix_(std::move(matrix)) {
  const auto shape = linear_shape(matrix_, kernels::Precision::fp32);
  inputs_ = shape.inputs;
  outputs_ = shape.outputs;
}

Shape Projection::output(Shape shape) const { return with_last(shape, outputs_); }

Tensor Projection::forward(const Pass& pass, const Weight& w, const Tensor& x,
                           const float* bias) const {
  assert(x.shape().last() == inputs_);
  Tensor y = pass.stream.make(output(x.shape()), kernels::activation_type(pass.precision));
  kernels::linear_forward(pass.stream, w.packed, x, bias, y);
  return y;
}

Tensor Projection::backward_input(const Pass& pass, const Weight& w, const Tensor& dy) const {
  Tensor dx =
      pass.stream.make(with_last(dy.shape(), inputs_), kernels::activation_type(pass.precision));
  kernels::linear_backward_input(pass.stream, w.packed, dy, dx);
  return dx;
}

void Projection::add_backward_input(const Pass& pass, const Weight& w, const Tensor& dy,
                                    Tensor& dx) const {
  if (dx.empty()) {
    dx = pass.stream.make(with_last(dy.shape(), inputs_));
    kernels::linear_backward_input(pass.stream, w.packed, dy, dx);
  } else {
    kernels::linear_add_backward_input(pass.stream, w.packed, dy, dx);
  }
}

/// Allocates a gradient, which outlives the pass.
Tensor Projection::new_gradient(Stream& stream) const {
  const Stream::Lasting lasting(stream);
  return stream.make(matrix_.shape);
}

void Projection::backward_weight(const Pass& pass, const Tensor& x, const Tensor& dy,
                                 Tensor& dw) const {
  const auto shape = linear_shape(matrix_, pass.precision);
  const std::int64_t rows = x.shape().rows();
  if (dw.empty()) {
    dw = new_gradient(pass.stream);
    kernels::linear_weight_gradient(pass.stream, shape, x, dy, dw.f32(), rows);
  } else {
    kernels::linear_backward_weight(pass.stream, shape, x, dy, dw.f32(), rows);
  }
}

void Projection::backward_parameters(const Pass& pass, const Tensor& x,
                                     const kernels::LinearGradient& dy, Tensor& dw, Tensor& db,
                                     bool is_matrix_frozen) const {
  if (is_matrix_frozen && kernels::activation_type(pass.precision) == DType::f32)
    return kernels::bias_backward(pass.stream, dy.for_bias.f32(), db.f32(), x.shape().rows(),
                                  outputs_);
  const bool begins = dw.empty();
  if (begins) dw = new_gradient(pass.stream);
  kernels::linear_backward_parameters(pass.stream, linear_shape(matrix_, pass.precision), x, dy,
                                      begins ? nullptr : dw.f32(), dw.f32(), db.f32());
}

}  // namespace troupe::models
