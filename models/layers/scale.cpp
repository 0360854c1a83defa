#include "models/layers/scale.h"

#include <utility>

#include "kernels/activations.h"
#include "kernels/combine.h"
#include "models/layers/wide.h"

namespace troupe::models {

Tensor Scale::scaled(const In& in, const Tensor& x) const {
  const Tensor from = wide(in, x);
  Tensor y = in.pass.stream.make(from.shape());
  kernels::combine(in.pass.stream, factor_, from.f32(), 0.0f, from.f32(), y.f32(), y.count());
  return y;
}

Tensor Scale::forward(const In& in, Tensor x, SavedSpan, SavedSpan) const { return scaled(in, x); }

Tensor Scale::backward_input(const In& in, Tensor dy, SavedSpan) const {
  if (in.input_gradient == InputGradient::unwanted) return {};
  return scaled(in, dy);
}

Tensor SoftCap::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  const Tensor from = wide(in, x);
  Tensor y = in.pass.stream.make(from.shape());
  kernels::softcap_forward(in.pass.stream, cap_, from.f32(), y.f32(), y.count());
  saved[0] = y;
  // The loss may overwrite its input.
  Tensor given = in.pass.stream.make(from.shape());
  kernels::combine(in.pass.stream, 1.0f, y.f32(), 0.0f, y.f32(), given.f32(), y.count());
  return given;
}

Tensor SoftCap::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  const Tensor y = std::exchange(saved[0], {});
  if (in.input_gradient == InputGradient::unwanted) return {};
  const Tensor from = wide(in, dy);
  Tensor dx = in.pass.stream.make(y.shape());
  kernels::softcap_backward(in.pass.stream, cap_, y.f32(), from.f32(), dx.f32(), y.count());
  return dx;
}

}  // namespace troupe::models
