#include "models/layers/images/conv2d.h"

#include <utility>

#include "kernels/rounding.h"

namespace troupe::models {
Conv2d::Conv2d(Parameter weight, std::int64_t stride, std::int64_t padding, std::int64_t groups)
    : weight_(std::move(weight)), stride_(stride), padding_(padding), groups_(groups) {
  assert(weight_.shape.rank() == 4 && weight_.shape[2] == weight_.shape[3]);
  assert(weight_.shape[0] % groups_ == 0);
}

kernels::Conv2dShape Conv2d::kernel_shape(const Shape& input) const {
  assert(input.rank() == 4 && input[1] == weight_.shape[1] * groups_);
  return {.batch = input[0],
          .in_channels = input[1],
          .height = input[2],
          .width = input[3],
          .out_channels = weight_.shape[0],
          .kernel = weight_.shape[2],
          .stride = stride_,
          .padding = padding_,
          .groups = groups_};
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
  Stream& stream = in.pass.stream;
  const auto type = kernels::activation_type(in.pass.precision);
  saved[input] = kernels::as_type(stream, x, type);
  const Tensor w = kernels::as_type(stream, in.weights[0].value, type);
  Tensor y = stream.make(output(x.shape()), type);
  kernels::convolve(stream, kernel_shape(x.shape()), in.pass.precision, saved[input], w, y);
  return y;
}

Tensor Conv2d::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Stream& stream = in.pass.stream;
  const auto type = kernels::activation_type(in.pass.precision);
  saved[gradient] = kernels::as_type(stream, dy, type);
  if (in.input_gradient == InputGradient::unwanted) return {};
  const Shape& shape = saved[input].shape();
  const Tensor w = kernels::as_type(stream, in.weights[0].value, type);
  Tensor dx = stream.make(shape, type);
  kernels::convolve_back_to_input(stream, kernel_shape(shape), in.pass.precision, w,
                                  saved[gradient], dx);
  return dx;
}

void Conv2d::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor x = std::exchange(saved[input], {});
  const Tensor dy = std::exchange(saved[gradient], {});
  kernels::convolve_back_to_weight(in.pass.stream, kernel_shape(x.shape()), in.pass.precision, x,
                                   dy, gradients[0]);
}

}  // namespace troupe::models
