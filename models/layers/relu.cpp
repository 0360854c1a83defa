#include "models/layers/relu.h"

#include <utility>

#include "kernels/between_layers.h"
#include "kernels/rounding.h"

namespace troupe::models {

Tensor Relu::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Tensor y = in.pass.stream.make(x.shape(), x.dtype());
  kernels::relu(in.pass.stream, x, y);
  saved[0] = y;  // Often shared with the next layer, and then free.
  return y;
}

Tensor Relu::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  const Tensor y = std::exchange(saved[0], {});
  Tensor dx = in.pass.stream.make(y.shape(), y.dtype());
  kernels::relu_back(in.pass.stream, y, kernels::as_type(in.pass.stream, dy, y.dtype()), dx);
  return dx;
}

}  // namespace troupe::models
