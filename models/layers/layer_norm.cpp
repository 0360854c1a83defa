#include "models/layers/layer_norm.h"

#include <utility>

#include "kernels/between_layers.h"
#include "models/layers/wide.h"

namespace troupe::models {
LayerNorm::LayerNorm(std::string name, std::int64_t width, float eps)
    : name_(std::move(name)), width_(width), eps_(eps) {}

std::vector<Parameter> LayerNorm::parameters() const {
  return {{.name = name_ + ".weight", .shape = {width_}, .init = Init::ones()},
          {.name = name_ + ".bias", .shape = {width_}, .init = Init::zeros()}};
}

Tensor LayerNorm::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Stream& stream = in.pass.stream;
  x = wide(in, x);
  Tensor y = stream.make(x.shape(), kernels::activation_type(in.pass.precision));
  saved[moments] = stream.make({2, x.shape().rows()});
  kernels::layer_norm(stream, x, in.weights[0].value, in.weights[1].value, eps_, y, saved[moments]);
  saved[input] = std::move(x);
  return y;
}

Norm::OfSum LayerNorm::forward_of_sum(const In& in, const Tensor& a, const Tensor& b,
                                      SavedSpan saved) const {
  Stream& stream = in.pass.stream;
  OfSum made{.sum = stream.make(b.shape()),
             .y = stream.make(b.shape(), kernels::activation_type(in.pass.precision))};
  saved[moments] = stream.make({2, b.shape().rows()});
  kernels::layer_norm_of_sum(stream, a, b, in.weights[0].value, in.weights[1].value, eps_, made.sum,
                             made.y, saved[moments]);
  saved[input] = made.sum;
  return made;
}

Tensor LayerNorm::backward_input_plus(const In& in, Tensor dy, const Tensor& more, Tensor& rounded,
                                      SavedSpan saved) const {
  Tensor dx;
  if (in.input_gradient == InputGradient::wanted) {
    dx = in.pass.stream.make(dy.shape());
    kernels::layer_norm_back(in.pass.stream, saved[input], in.weights[0].value, saved[moments], dy,
                             more, dx, rounded);
  }
  saved[gradient] = std::move(dy);
  return dx;
}

void LayerNorm::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor x = std::exchange(saved[input], {});
  const Tensor mean_and_rstd = std::exchange(saved[moments], {});
  const Tensor dy = std::exchange(saved[gradient], {});
  kernels::layer_norm_back_to_weight(in.pass.stream, x, mean_and_rstd, dy, gradients[0],
                                     gradients[1]);
}

}  // namespace troupe::models
