#include "models/layers/position_embedding.h"

#include <utility>

#include "kernels/activations.h"
#include "kernels/linear.h"
#include "kernels/steps.h"
#include "models/layers/wide.h"

namespace troupe::models {

PositionEmbedding::PositionEmbedding(Parameter table, std::optional<std::int64_t> row)
    : table_(std::move(table)), row_(row) {}

Tensor PositionEmbedding::forward(const In& in, Tensor x, SavedSpan, SavedSpan) const {
  x = wide(in, x);
  if (row_) {
    const auto width = x.shape().last();
    Tensor y = in.pass.stream.make(x.shape());
    kernels::add_row(in.pass.stream, x.f32(), in.weights[0].value.f32() + *row_ * width, y.f32(),
                     x.shape().rows(), width);
    return y;
  }
  const auto samples = x.shape()[0];
  const auto per_sample = x.count() / samples;
  const auto first = in.pass.first_position * x.shape().last();
  assert(first + per_sample <= table_.shape.count());
  Tensor y = in.pass.stream.make(x.shape());
  for (std::int64_t i = 0; i < samples; ++i)
    kernels::add(in.pass.stream, x.f32() + i * per_sample, in.weights[0].value.f32() + first,
                 y.f32() + i * per_sample, per_sample);
  return y;
}

Tensor PositionEmbedding::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  saved[0] = wide(in, dy);
  return saved[0];
}

void PositionEmbedding::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor dy = std::exchange(saved[0], {});
  if (row_) {
    const auto width = dy.shape().last();
    kernels::bias_backward(in.pass.stream, dy.f32(), gradients[0].f32() + *row_ * width,
                           dy.shape().rows(), width);
    return;
  }
  const auto samples = dy.shape()[0];
  const auto per_sample = dy.count() / samples;
  for (std::int64_t i = 0; i < samples; ++i)
    kernels::accumulate(in.pass.stream, gradients[0].f32(), dy.f32() + i * per_sample, per_sample);
}

}  // namespace troupe::models
