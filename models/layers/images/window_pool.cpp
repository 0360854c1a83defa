#include "models/layers/images/window_pool.h"

#include <utility>

#include "models/layers/wide.h"

namespace troupe::models {
namespace {

kernels::PoolShape pool_shape(const Shape& input, const Windows& windows) {
  assert(input.rank() == 4);
  return {.images = input[0] * input[1],
          .height = input[2],
          .width = input[3],
          .kernel = windows.kernel,
          .stride = windows.stride,
          .padding = windows.padding};
}

Shape output_of(const Shape& input, const Windows& windows) {
  const auto shape = pool_shape(input, windows);
  return {input[0], input[1], shape.out_height(), shape.out_width()};
}

}  // namespace

Shape MaxPool::output(const Shape& input) const { return output_of(input, windows_); }

Tensor MaxPool::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Stream& stream = in.pass.stream;
  const Shape made = output(x.shape());
  Tensor y = stream.make(made);
  saved[places] = stream.make(made, DType::u8);
  kernels::max_pool_forward(stream, pool_shape(x.shape(), windows_), wide(in, x).f32(), y.f32(),
                            saved[places].data<std::uint8_t>());
  saved[input] = std::move(x);  // For its shape. The layer before usually holds it anyway.
  return y;
}

Tensor MaxPool::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  const Shape shape = std::exchange(saved[input], {}).shape();
  const Tensor where = std::exchange(saved[places], {});
  if (in.input_gradient == InputGradient::unwanted) return {};
  Tensor dx = in.pass.stream.make(shape);
  kernels::max_pool_backward(in.pass.stream, pool_shape(shape, windows_), wide(in, dy).f32(),
                             where.data<std::uint8_t>(), dx.f32());
  return dx;
}

Shape WindowMean::output(const Shape& input) const { return output_of(input, windows_); }

Tensor WindowMean::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Tensor y = in.pass.stream.make(output(x.shape()));
  kernels::window_mean_forward(in.pass.stream, pool_shape(x.shape(), windows_), wide(in, x).f32(),
                               y.f32());
  saved[0] = std::move(x);  // For its shape.
  return y;
}

Tensor WindowMean::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  const Shape shape = std::exchange(saved[0], {}).shape();
  if (in.input_gradient == InputGradient::unwanted) return {};
  Tensor dx = in.pass.stream.make(shape);
  kernels::window_mean_backward(in.pass.stream, pool_shape(shape, windows_), wide(in, dy).f32(),
                                dx.f32());
  return dx;
}

}  // namespace troupe::models
