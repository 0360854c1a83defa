#include "models/layers/images/class_token.h"

#include <utility>

#include "kernels/copy.h"
#include "kernels/steps.h"
#include "models/layers/wide.h"

namespace troupe::models {

ClassToken::ClassToken(Parameter token) : token_(std::move(token)) {}

Tensor ClassToken::forward(const In& in, Tensor x, SavedSpan, SavedSpan) const {
  Stream& stream = in.pass.stream;
  x = wide(in, x);
  const auto batch = x.shape()[0], length = x.shape()[1], width = x.shape()[2];
  const auto from = length * width, to = from + width;
  Tensor y = stream.make(output(x.shape()));
  kernels::copy_rows(stream, {in.weights[0].value.f32(), 0}, {y.f32(), to}, batch, width);
  kernels::copy_rows(stream, {x.f32(), from}, {y.f32() + width, to}, batch, from);
  return y;
}

Tensor ClassToken::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Stream& stream = in.pass.stream;
  dy = wide(in, dy);
  const auto batch = dy.shape()[0], length = dy.shape()[1] - 1, width = dy.shape()[2];
  const auto to = length * width, from = to + width;
  saved[0] = stream.make({batch, width});
  kernels::copy_rows(stream, {dy.f32(), from}, {saved[0].f32(), width}, batch, width);
  if (in.input_gradient == InputGradient::unwanted) return {};
  Tensor dx = stream.make({batch, length, width});
  kernels::copy_rows(stream, {dy.f32() + width, from}, {dx.f32(), to}, batch, to);
  return dx;
}

void ClassToken::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor dy = std::exchange(saved[0], {});
  const auto batch = dy.shape()[0], width = dy.shape()[1];
  for (std::int64_t i = 0; i < batch; ++i)
    kernels::accumulate(in.pass.stream, gradients[0].f32(), dy.f32() + i * width, width);
}

Tensor FirstRow::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  x = wide(in, x);
  const auto batch = x.shape()[0], length = x.shape()[1], width = x.shape()[2];
  Tensor y = in.pass.stream.make({batch, width});
  kernels::copy_rows(in.pass.stream, {x.f32(), length * width}, {y.f32(), width}, batch, width);
  saved[0] = std::move(x);  // For its shape.
  return y;
}

Tensor FirstRow::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  const Shape shape = std::exchange(saved[0], {}).shape();
  dy = wide(in, dy);
  Tensor dx = in.pass.stream.make(shape);
  kernels::fill(in.pass.stream, 0, dx.f32(), dx.count());
  kernels::copy_rows(in.pass.stream, {dy.f32(), shape[2]}, {dx.f32(), shape[1] * shape[2]},
                     shape[0], shape[2]);
  return dx;
}

}  // namespace troupe::models
