#include "kernels/linear_gelu.h"

#include <cassert>
#include <utility>

namespace troupe::kernels {

LinearGelu linear_gelu_forward(Stream& stream, const PackedLinear& w, const Tensor& x,
                               const float* bias, Gelu form) {
  const Shape shape{x.shape().rows(), w.shape().outputs};
  Tensor pre = stream.make(shape), y = stream.make(shape);
  linear_forward(stream, w, x, bias, pre.f32(), shape.rows());
  gelu_forward(stream, form, pre.f32(), y.f32(), y.count());
  return {.pre = std::move(pre), .y = as_operand(stream, y, w.shape().precision)};
}

LinearGradient linear_gelu_backward(Stream& stream, const PackedLinear& w, const Tensor& dy,
                                    Gelu form, const Tensor& pre) {
  assert(pre.shape().last() == w.shape().inputs);
  Tensor dpre = stream.make(pre.shape());
  linear_backward_input(stream, w, dy, dpre.f32(), pre.shape().rows());
  gelu_backward(stream, form, pre.f32(), dpre.f32(), dpre.f32(), dpre.count());
  return linear_gradient(stream, std::move(dpre), w.shape().precision);
}

}  // namespace troupe::kernels
