#include "models/layers/rms_norm.h"

#include <utility>

#include "kernels/activations.h"
#include "kernels/between_layers.h"
#include "kernels/copy.h"
#include "models/layers/wide.h"

namespace troupe::models {
RmsNorm::RmsNorm(std::string name, std::int64_t width, float eps, float offset)
    : name_(std::move(name)), width_(width), eps_(eps), offset_(offset) {
  assert(offset == 0 || offset == 1);
}

std::vector<Parameter> RmsNorm::parameters() const {
  return {{.name = name_ + ".weight",
           .shape = {width_},
           .init = offset_ == 0 ? Init::ones() : Init::zeros()}};
}

Tensor RmsNorm::scales(const In& in) const {
  const Tensor& weight = in.weights[0].value;
  if (offset_ == 0) return weight;
  Tensor sum = in.pass.stream.make(weight.shape());
  kernels::fill(in.pass.stream, offset_, sum.f32(), sum.count());
  kernels::add(in.pass.stream, weight.f32(), sum.f32(), sum.f32(), sum.count());
  return sum;
}

Tensor RmsNorm::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Stream& stream = in.pass.stream;
  x = wide(in, x);
  Tensor y = stream.make(x.shape(), kernels::activation_type(in.pass.precision));
  saved[rstd] = stream.make({x.shape().rows()});
  kernels::rms_norm(stream, x, scales(in), eps_, y, saved[rstd]);
  saved[input] = std::move(x);
  return y;
}

Norm::OfSum RmsNorm::forward_of_sum(const In& in, const Tensor& a, const Tensor& b,
                                    SavedSpan saved) const {
  Stream& stream = in.pass.stream;
  OfSum made{.sum = stream.make(b.shape()),
             .y = stream.make(b.shape(), kernels::activation_type(in.pass.precision))};
  saved[rstd] = stream.make({b.shape().rows()});
  kernels::rms_norm_of_sum(stream, a, b, scales(in), eps_, made.sum, made.y, saved[rstd]);
  saved[input] = made.sum;
  return made;
}

Tensor RmsNorm::backward_input_plus(const In& in, Tensor dy, const Tensor& more, Tensor& rounded,
                                    SavedSpan saved) const {
  Tensor dx;
  if (in.input_gradient == InputGradient::wanted) {
    dx = in.pass.stream.make(dy.shape());
    kernels::rms_norm_back(in.pass.stream, saved[input], scales(in), saved[rstd], dy, more, dx,
                           rounded);
  }
  saved[gradient] = std::move(dy);
  return dx;
}

void RmsNorm::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor x = std::exchange(saved[input], {});
  const Tensor inverse_root = std::exchange(saved[rstd], {});
  const Tensor dy = std::exchange(saved[gradient], {});
  kernels::rms_norm_back_to_weight(in.pass.stream, x, inverse_root, dy, gradients[0]);
}

}  // namespace troupe::models
