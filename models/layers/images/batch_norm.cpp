#include "models/layers/images/batch_norm.h"

#include <utility>

#include "kernels/batch_norm.h"
#include "models/layers/images/images.h"
#include "models/layers/wide.h"

namespace troupe::models {
namespace {

enum Statistic { running_mean, running_variance };

}  // namespace

BatchNorm::BatchNorm(std::string name, std::int64_t channels, float eps)
    : name_(std::move(name)), channels_(channels), eps_(eps) {}

std::vector<Parameter> BatchNorm::parameters() const {
  return {{.name = name_ + ".weight", .shape = {channels_}, .init = Init::ones()},
          {.name = name_ + ".bias", .shape = {channels_}, .init = Init::zeros()}};
}

std::vector<Buffer> BatchNorm::buffers() const {
  return {{.name = name_ + ".running_mean", .shape = {channels_}, .initial = 0},
          {.name = name_ + ".running_var", .shape = {channels_}, .initial = 1}};
}

Tensor BatchNorm::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const {
  Stream& stream = in.pass.stream;
  x = wide(in, x);
  const auto shape = image_shape(x.shape());
  const float* weight = in.weights[0].value.f32();
  const float* bias = in.weights[1].value.f32();
  Tensor y = stream.make(x.shape());
  if (in.pass.mode == Mode::evaluation) {
    kernels::batch_norm_apply(stream, shape, x.f32(), weight, bias, in.buffers[running_mean].f32(),
                              in.buffers[running_variance].f32(), y.f32(), eps_);
    return y;
  }
  saved[mean] = stream.make({channels_});
  saved[rstd] = stream.make({channels_});
  statistics[running_variance] = stream.make({channels_});
  kernels::batch_norm_forward(stream, shape, x.f32(), weight, bias, y.f32(), saved[mean].f32(),
                              saved[rstd].f32(), statistics[running_variance].f32(), eps_);
  statistics[running_mean] = saved[mean];
  saved[input] = std::move(x);
  return y;
}

Tensor BatchNorm::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  dy = wide(in, dy);
  Tensor dx;
  if (in.input_gradient == InputGradient::wanted) {
    dx = in.pass.stream.make(dy.shape());
    kernels::batch_norm_backward_input(in.pass.stream, image_shape(dy.shape()), saved[input].f32(),
                                       in.weights[0].value.f32(), saved[mean].f32(),
                                       saved[rstd].f32(), dy.f32(), dx.f32());
  }
  saved[gradient] = std::move(dy);
  return dx;
}

void BatchNorm::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor x = std::exchange(saved[input], {});
  const Tensor means = std::exchange(saved[mean], {});
  const Tensor rstds = std::exchange(saved[rstd], {});
  const Tensor dy = std::exchange(saved[gradient], {});
  kernels::batch_norm_backward_weight(in.pass.stream, image_shape(x.shape()), x.f32(), means.f32(),
                                      rstds.f32(), dy.f32(), gradients[0].f32(),
                                      gradients[1].f32());
}

}  // namespace troupe::models
