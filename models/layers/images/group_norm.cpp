#include "models/layers/images/group_norm.h"

#include <utility>

#include "models/arithmetic.h"
#include "models/layers/images/images.h"
#include "models/layers/wide.h"

namespace troupe::models {
namespace {

/// Returns the shape in which each group of each image is a channel.
kernels::ImageShape shape_of_groups(const Shape& shape, std::int64_t groups) {
  const auto images = image_shape(shape);
  return {.batch = 1,
          .channels = images.batch * groups,
          .pixels = images.channels / groups * images.pixels};
}

/// Numbers of a channel or a group that are all the same.
struct Same {
  Tensor zeros, ones;

  Same(Stream& stream, std::int64_t count)
      : zeros(filled(stream, {count}, DType::f32, 0)),
        ones(filled(stream, {count}, DType::f32, 1)) {}
};

/// Returns x weight + bias, by channel.
Tensor scaled(Stream& stream, const Tensor& x, const float* weight, const float* bias,
              const Same& channels) {
  Tensor y = stream.make(x.shape());
  kernels::batch_norm_apply(stream, image_shape(x.shape()), x.f32(), weight, bias,
                            channels.zeros.f32(), channels.ones.f32(), y.f32(), 0);
  return y;
}

}  // namespace

GroupNorm::GroupNorm(std::string name, std::int64_t channels, std::int64_t groups, float eps)
    : name_(std::move(name)), channels_(channels), groups_(groups), eps_(eps) {
  assert(channels % groups == 0);
}

std::vector<Parameter> GroupNorm::parameters() const {
  return {{.name = name_ + ".weight", .shape = {channels_}, .init = Init::ones()},
          {.name = name_ + ".bias", .shape = {channels_}, .init = Init::zeros()}};
}

// With groups as channels, a batch norm without weights normalizes. Its kernels do the rest, too.

Tensor GroupNorm::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Stream& stream = in.pass.stream;
  x = wide(in, x);
  const auto shape = shape_of_groups(x.shape(), groups_);
  const Same of_groups(stream, shape.channels), of_channels(stream, channels_);
  Tensor mean = stream.make({shape.channels}), variance = stream.make({shape.channels});
  saved[rstd] = stream.make({shape.channels});
  saved[normal] = stream.make(x.shape());
  kernels::batch_norm_forward(stream, shape, x.f32(), of_groups.ones.f32(), of_groups.zeros.f32(),
                              saved[normal].f32(), mean.f32(), saved[rstd].f32(), variance.f32(),
                              eps_);
  return scaled(stream, saved[normal], in.weights[0].value.f32(), in.weights[1].value.f32(),
                of_channels);
}

Tensor GroupNorm::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Stream& stream = in.pass.stream;
  saved[gradient] = wide(in, dy);
  const Tensor inverse_root = std::exchange(saved[rstd], {});
  if (in.input_gradient == InputGradient::unwanted) return {};
  const auto shape = shape_of_groups(saved[gradient].shape(), groups_);
  const Same of_groups(stream, shape.channels), of_channels(stream, channels_);
  const Tensor dnormal = scaled(stream, saved[gradient], in.weights[0].value.f32(),
                                of_channels.zeros.f32(), of_channels);
  Tensor dx = stream.make(dnormal.shape());
  // The input is normal already, so the kernel takes 1 / deviation as the weight.
  kernels::batch_norm_backward_input(stream, shape, saved[normal].f32(), inverse_root.f32(),
                                     of_groups.zeros.f32(), of_groups.ones.f32(), dnormal.f32(),
                                     dx.f32());
  return dx;
}

void GroupNorm::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  Stream& stream = in.pass.stream;
  const Tensor x = std::exchange(saved[normal], {}), dy = std::exchange(saved[gradient], {});
  const Same of_channels(stream, channels_);
  kernels::batch_norm_backward_weight(stream, image_shape(x.shape()), x.f32(),
                                      of_channels.zeros.f32(), of_channels.ones.f32(), dy.f32(),
                                      gradients[0].f32(), gradients[1].f32());
}

}  // namespace troupe::models
