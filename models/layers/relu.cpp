#include "models/layers/relu.h"

#include <utility>

#include "kernels/activations.h"

namespace troupe::models {

Tensor Relu::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Tensor y = in.pass.stream.make(x.shape());
  kernels::relu_forward(in.pass.stream, x.f32(), y.f32(), x.count());
  saved[0] = y;  // Often the next layer keeps it too: then it costs nothing.
  return y;
}

Tensor Relu::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  const Tensor y = std::exchange(saved[0], {});
  Tensor dx = in.pass.stream.make(dy.shape());
  kernels::relu_backward(in.pass.stream, y.f32(), dy.f32(), dx.f32(), y.count());
  return dx;
}

}  // namespace troupe::models
