#include "models/layers/conv2d.h"

#include <utility>

namespace troupe::models {
Conv2d::Conv2d(Parameter weight, std::int64_t stride, std::int64_t padding)
    : weight_(std::move(weight)), stride_(stride), padding_(padding) {
  assert(weight_.shape.rank() == 4 && weight_.shape[2] == weight_.shape[3]);
}

kernels::Conv2dShape Conv2d::kernel_shape(const Shape& input) const {
  assert(input.rank() == 4 && input[1] == weight_.shape[1]);
  return {.batch = input[0],
          .in_channels = input[1],
          .height = input[2],
          .width = input[3],
          .out_channels = weight_.shape[0],
          .kernel = weight_.shape[2],
          .stride = stride_,
          .padding = padding_};
}

Shape Conv2d::output(const Shape& input) const {
  const auto shape = kernel_shape(input);
  return {shape.batch, shape.out_channels, shape.out_height(), shape.out_width()};
}

Work Conv2d::work(const Shape& input) const {
  const Shape images = output(input);
  const auto in = static_cast<double>(input.count()), out = static_cast<double>(images.count());
  const auto weights = static_cast<double>(weight_.shape.count());
  const double operations = 2 * out * weights / static_cast<double>(weight_.shape[0]);
  const double bytes = sizeof(float) * (in + out + weights);
  return {.forward = {{"conv2d_forward", operations, bytes}},
          .backward_input = {{"conv2d_backward_input", operations, bytes}},
          .backward_weight = {{"conv2d_backward_weight", operations, bytes}}};
}

Tensor Conv2d::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Tensor y = in.pass.stream.make(output(x.shape()));
  kernels::conv2d_forward(in.pass.stream, kernel_shape(x.shape()), x.f32(),
                          in.weights[0].value.f32(), y.f32());
  saved[input] = std::move(x);
  return y;
}

Tensor Conv2d::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Tensor dx;
  if (in.input_gradient == InputGradient::wanted) {
    const Shape& shape = saved[input].shape();
    dx = in.pass.stream.make(shape);
    kernels::conv2d_backward_input(in.pass.stream, kernel_shape(shape), in.weights[0].value.f32(),
                                   dy.f32(), dx.f32());
  }
  saved[gradient] = std::move(dy);
  return dx;
}

void Conv2d::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor x = std::exchange(saved[input], {});
  const Tensor dy = std::exchange(saved[gradient], {});
  kernels::conv2d_backward_weight(in.pass.stream, kernel_shape(x.shape()), x.f32(), dy.f32(),
                                  gradients[0].f32());
}

}  // namespace troupe::models
