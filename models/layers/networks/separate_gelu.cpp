#include "models/layers/networks/separate_gelu.h"

#include <utility>

#include "models/layers/wide.h"

namespace troupe::models {

Tensor SeparateGelu::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  saved[0] = wide(in, x);
  Tensor y = in.pass.stream.make(x.shape());
  kernels::gelu_forward(in.pass.stream, form_, std::as_const(saved[0]).f32(), y.f32(), y.count());
  return y;
}

Tensor SeparateGelu::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  const Tensor x = std::exchange(saved[0], {});
  const Tensor wide_dy = wide(in, dy);
  Tensor dx = in.pass.stream.make(x.shape());
  kernels::gelu_backward(in.pass.stream, form_, x.f32(), wide_dy.f32(), dx.f32(), dx.count());
  return dx;
}

}  // namespace troupe::models
