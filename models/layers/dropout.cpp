#include "models/layers/dropout.h"

#include <utility>

#include "kernels/dropout.h"
#include "models/layers/wide.h"

namespace troupe::models {

Tensor Dropout::dropped(const In& in, Tensor x) const {
  const Pass& pass = in.pass;
  if (rate_ == 0 || pass.mode == Mode::evaluation) return x;
  RandomKey key = pass.key;
  key.operation = operation_;
  x = wide(in, x);
  Tensor y = pass.stream.make(x.shape());
  const auto samples = x.shape()[0];
  kernels::dropout(pass.stream, key, rate_, x.f32(), y.f32(), samples, x.count() / samples);
  return y;
}

Tensor Dropout::forward(const In& in, Tensor x, SavedSpan, SavedSpan) const {
  return dropped(in, std::move(x));
}

Tensor Dropout::backward_input(const In& in, Tensor dy, SavedSpan) const {
  return dropped(in, std::move(dy));
}

}  // namespace troupe::models
