#include "models/layers/gelu.h"

#include <utility>

#include "kernels/activations.h"

namespace troupe::models {

Tensor Gelu::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Tensor y = in.pass.stream.make(x.shape());
  switch (form_) {
    case Form::erf:
      kernels::gelu_erf_forward(in.pass.stream, x.f32(), y.f32(), x.count());
      break;
    case Form::tanh:
      kernels::gelu_tanh_forward(in.pass.stream, x.f32(), y.f32(), x.count());
      break;
  }
  saved[0] = std::move(x);
  return y;
}

Tensor Gelu::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  const Tensor x = std::exchange(saved[0], {});
  Tensor dx = in.pass.stream.make(dy.shape());
  switch (form_) {
    case Form::erf:
      kernels::gelu_erf_backward(in.pass.stream, x.f32(), dy.f32(), dx.f32(), x.count());
      break;
    case Form::tanh:
      kernels::gelu_tanh_backward(in.pass.stream, x.f32(), dy.f32(), dx.f32(), x.count());
      break;
  }
  return dx;
}

}  // namespace troupe::models
