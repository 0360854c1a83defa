#include "models/layers/position_embedding.h"

#include <utility>

#include "kernels/activations.h"
#include "kernels/embedding.h"
#include "kernels/linear.h"
#include "kernels/steps.h"
#include "models/layers/kept_steps.h"
#include "models/layers/wide.h"

namespace troupe::models {

PositionEmbedding::PositionEmbedding(Parameter table, const Rows& rows)
    : table_(std::move(table)), rows_(rows) {}

Reach PositionEmbedding::reach_from(RowSource& stream, KeptSources& kept) const {
  if (rows_.all) return Reach::own_row;
  // Positions follow from the place of the text's next rows.
  const auto wanted = rows_.kept ? kept[static_cast<std::size_t>(*rows_.kept)] : RowSource::text;
  return stream == wanted ? Reach::own_row : Reach::all_rows;
}

Tensor PositionEmbedding::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  x = wide(in, x);
  const auto width = x.shape().last();
  if (rows_.kept) {
    const Tensor rows = saved[rows_of_kept] = kept_value(in, *rows_.kept);
    Tensor added = in.pass.stream.make(x.shape()), y = in.pass.stream.make(x.shape());
    kernels::embedding_forward(in.pass.stream, in.weights[0].value.f32(), rows.data<std::int32_t>(),
                               added.f32(), rows.count(), width);
    kernels::add(in.pass.stream, x.f32(), added.f32(), y.f32(), x.count());
    return y;
  }
  if (rows_.all) {
    Tensor y = in.pass.stream.make(x.shape());
    kernels::add_row(in.pass.stream, x.f32(), in.weights[0].value.f32() + *rows_.all * width,
                     y.f32(), x.shape().rows(), width);
    return y;
  }
  const auto samples = x.shape()[0];
  const auto per_sample = x.count() / samples;
  const auto first = in.pass.first_position * width;
  assert(first + per_sample <= table_.shape.count());
  Tensor y = in.pass.stream.make(x.shape());
  for (std::int64_t i = 0; i < samples; ++i)
    kernels::add(in.pass.stream, x.f32() + i * per_sample, in.weights[0].value.f32() + first,
                 y.f32() + i * per_sample, per_sample);
  return y;
}

Tensor PositionEmbedding::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  saved[gradient] = wide(in, dy);
  return saved[gradient];
}

void PositionEmbedding::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor dy = std::exchange(saved[gradient], {});
  const auto width = dy.shape().last();
  if (rows_.kept) {
    const Tensor rows = std::exchange(saved[rows_of_kept], {});
    kernels::embedding_backward_weight(in.pass.stream, rows.data<std::int32_t>(), dy.f32(),
                                       gradients[0].f32(), rows.count(), width);
    return;
  }
  if (rows_.all) {
    kernels::bias_backward(in.pass.stream, dy.f32(), gradients[0].f32() + *rows_.all * width,
                           dy.shape().rows(), width);
    return;
  }
  const auto samples = dy.shape()[0];
  const auto per_sample = dy.count() / samples;
  for (std::int64_t i = 0; i < samples; ++i)
    kernels::accumulate(in.pass.stream, gradients[0].f32(), dy.f32() + i * per_sample, per_sample);
}

}  // namespace troupe::models
