#include "models/layers/dropout.h"

#include <utility>

#include "kernels/dropout.h"

namespace troupe::models {

Tensor Dropout::dropped(const Pass& pass, Tensor x) const {
  if (rate_ == 0 || pass.mode == Mode::evaluation) return x;
  RandomKey key = pass.key;
  key.operation = operation_;
  Tensor y = pass.stream.make(x.shape());
  const auto samples = x.shape()[0];
  kernels::dropout(pass.stream, key, rate_, x.f32(), y.f32(), samples, x.count() / samples);
  return y;
}

Tensor Dropout::forward(const In& in, Tensor x, SavedSpan, SavedSpan) const {
  return dropped(in.pass, std::move(x));
}

Tensor Dropout::backward_input(const In& in, Tensor dy, SavedSpan) const {
  return dropped(in.pass, std::move(dy));
}

}  // namespace troupe::models
