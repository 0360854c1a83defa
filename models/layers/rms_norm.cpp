#include "models/layers/rms_norm.h"

#include <utility>

#include "kernels/norm.h"

namespace troupe::models {
RmsNorm::RmsNorm(std::string name, std::int64_t width, float eps)
    : name_(std::move(name)), width_(width), eps_(eps) {}

std::vector<Parameter> RmsNorm::parameters() const {
  return {{.name = name_ + ".weight", .shape = {width_}, .init = Init::ones()}};
}

Tensor RmsNorm::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Stream& stream = in.pass.stream;
  const auto rows = x.shape().rows();
  Tensor y = stream.make(x.shape());
  Tensor inverse_root = stream.make({rows});
  kernels::rms_norm_forward(stream, x.f32(), in.weights[0].value.f32(), y.f32(), inverse_root.f32(),
                            rows, width_, eps_);
  saved[input] = std::move(x);
  saved[rstd] = std::move(inverse_root);
  return y;
}

Tensor RmsNorm::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Tensor dx;
  if (in.input_gradient == InputGradient::wanted) {
    dx = in.pass.stream.make(dy.shape());
    kernels::rms_norm_backward_input(in.pass.stream, saved[input].f32(), in.weights[0].value.f32(),
                                     saved[rstd].f32(), dy.f32(), dx.f32(), dy.shape().rows(),
                                     width_);
  }
  saved[gradient] = std::move(dy);
  return dx;
}

void RmsNorm::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor x = std::exchange(saved[input], {});
  const Tensor inverse_root = std::exchange(saved[rstd], {});
  const Tensor dy = std::exchange(saved[gradient], {});
  kernels::rms_norm_backward_weight(in.pass.stream, x.f32(), inverse_root.f32(), dy.f32(),
                                    gradients[0].f32(), x.shape().rows(), width_);
}

}  // namespace troupe::models
