#include "models/layers/layer_norm.h"

#include <utility>

#include "kernels/norm.h"

namespace troupe::models {
LayerNorm::LayerNorm(std::string name, std::int64_t width, float eps)
    : name_(std::move(name)), width_(width), eps_(eps) {}

std::vector<Parameter> LayerNorm::parameters() const {
  return {{.name = name_ + ".weight", .shape = {width_}, .init = Init::ones()},
          {.name = name_ + ".bias", .shape = {width_}, .init = Init::zeros()}};
}

Tensor LayerNorm::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Stream& stream = in.pass.stream;
  const auto rows = x.shape().rows();
  Tensor y = stream.make(x.shape());
  Tensor mean_and_rstd = stream.make({2, rows});
  float* mean = mean_and_rstd.f32();
  kernels::layer_norm_forward(stream, x.f32(), in.weights[0].value.f32(), in.weights[1].value.f32(),
                              y.f32(), mean, mean + rows, rows, width_, eps_);
  saved[input] = std::move(x);
  saved[moments] = std::move(mean_and_rstd);
  return y;
}

Tensor LayerNorm::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Tensor dx;
  if (in.input_gradient == InputGradient::wanted) {
    const auto rows = dy.shape().rows();
    const float* mean = saved[moments].f32();
    dx = in.pass.stream.make(dy.shape());
    kernels::layer_norm_backward_input(in.pass.stream, saved[input].f32(),
                                       in.weights[0].value.f32(), mean, mean + rows, dy.f32(),
                                       dx.f32(), rows, width_);
  }
  saved[gradient] = std::move(dy);
  return dx;
}

void LayerNorm::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor x = std::exchange(saved[input], {});
  const Tensor mean_and_rstd = std::exchange(saved[moments], {});
  const Tensor dy = std::exchange(saved[gradient], {});
  const auto rows = x.shape().rows();
  const float* mean = mean_and_rstd.f32();
  kernels::layer_norm_backward_weight(in.pass.stream, x.f32(), mean, mean + rows, dy.f32(),
                                      gradients[0].f32(), gradients[1].f32(), rows, width_);
}

}  // namespace troupe::models
