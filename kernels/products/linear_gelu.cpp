#include "kernels/linear_gelu.h"

#include <cassert>
#include <utility>

#include "kernels/products/linear_parts.h"

namespace troupe::kernels {

LinearGelu linear_gelu_forward(Stream& stream, const PackedLinear& w, const Tensor& x,
                               const float* bias, Gelu form) {
  const LinearShape& of = w.shape();
  assert(x.shape().last() == of.inputs);
  const Shape shape{x.shape().rows(), of.outputs};
  const DType type = activation_type(of.precision);
  Tensor pre = stream.make(shape, type), y = stream.make(shape, type);
  if (type == DType::f32) {
    linear_forward(stream, w, x, bias, pre);
    gelu_forward(stream, form, pre.f32(), y.f32(), y.count());
    return {.pre = std::move(pre), .y = as_operand(stream, y, of.precision)};
  }
  on_tensor_cores(stream, type, [&]<class Number>(const TensorCoreKernels<Number>& there) {
    const auto matrix = inputs_by_outputs(of, w.forward().data<Number>());
    const DeviceProduct<Number> product{.rows = shape.rows(),
                                        .columns = of.outputs,
                                        .depth = of.inputs,
                                        .a = {x.data<Number>(), of.inputs, 1},
                                        .b = on_device(matrix),
                                        .start = bias};
    there.multiply_to_gelu(stream, product, form, pre.data<Number>(), y.data<Number>());
  });
  return {.pre = std::move(pre), .y = std::move(y)};
}

LinearGradient linear_gelu_backward(Stream& stream, const PackedLinear& w, const Tensor& dy,
                                    Gelu form, const Tensor& pre) {
  const LinearShape& of = w.shape();
  assert(pre.shape().last() == of.inputs && dy.shape().last() == of.outputs);
  Tensor dpre = stream.make(pre.shape(), pre.dtype());
  if (pre.dtype() == DType::f32) {
    linear_backward_input(stream, w, dy, dpre);
    gelu_backward(stream, form, pre.f32(), dpre.f32(), dpre.f32(), dpre.count());
    return linear_gradient(stream, std::move(dpre), of.precision);
  }
  on_tensor_cores(stream, pre.dtype(), [&]<class Number>(const TensorCoreKernels<Number>& there) {
    const auto matrix = inputs_by_outputs(of, w.backward().data<Number>());
    const DeviceProduct<Number> product{.rows = pre.shape().rows(),
                                        .columns = of.inputs,
                                        .depth = of.outputs,
                                        .a = {dy.data<Number>(), of.outputs, 1},
                                        .b = on_device(matrix.transposed())};
    there.multiply_by_gelu_slope(stream, product, form, pre.data<Number>(), dpre.data<Number>());
  });
  return linear_gradient(stream, std::move(dpre), of.precision);
}

}  // namespace troupe::kernels
