#include "models/layers/images/average_pool.h"

#include <utility>

#include "models/layers/images/images.h"
#include "models/layers/wide.h"

namespace troupe::models {

Tensor AveragePool::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Tensor y = in.pass.stream.make(output(x.shape()));
  kernels::average_pool_forward(in.pass.stream, image_shape(x.shape()), wide(in, x).f32(), y.f32());
  saved[0] = std::move(x);  // For its shape. The layer before usually holds it anyway.
  return y;
}

Tensor AveragePool::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  const Shape shape = std::exchange(saved[0], {}).shape();
  Tensor dx = in.pass.stream.make(shape);
  kernels::average_pool_backward(in.pass.stream, image_shape(shape), wide(in, dy).f32(), dx.f32());
  return dx;
}

}  // namespace troupe::models
