#include "models/layers/token_embedding.h"

#include <cassert>
#include <utility>

#include "kernels/embedding.h"
#include "models/layers/wide.h"

namespace troupe::models {
TokenEmbedding::TokenEmbedding(Parameter table, std::optional<int> kept)
    : table_(std::move(table)), kept_(kept) {
  assert(table_.shape.rank() == 2);
}

Shape TokenEmbedding::output(const Shape& input) const {
  Shape shape = input;
  shape.append(table_.shape[1]);
  return shape;
}

Reach TokenEmbedding::reach_from(RowSource& stream, KeptSources& kept) const {
  if (kept_) stream = kept[static_cast<std::size_t>(*kept_)];
  return Reach::own_row;
}

const Shape& TokenEmbedding::shape_of_tokens(const Shape& input, const KeptShapes& kept) const {
  return kept_ ? kept[static_cast<std::size_t>(*kept_)] : input;
}

Shape TokenEmbedding::output_with(const Shape& input, KeptShapes& kept) const {
  return output(shape_of_tokens(input, kept));
}

Work TokenEmbedding::work_with(const Shape& input, KeptShapes& kept) const {
  return work(shape_of_tokens(input, kept));
}

Tensor TokenEmbedding::forward(const In& in, Tensor tokens, SavedSpan saved, SavedSpan) const {
  if (kept_) tokens = in.pass.frame->values[static_cast<std::size_t>(*kept_)];
  assert(!tokens.empty() && "a kept value is read before it is kept");
  Tensor y = in.pass.stream.make(output(tokens.shape()));
  kernels::embedding_forward(in.pass.stream, in.weights[0].value.f32(), tokens.data<std::int32_t>(),
                             y.f32(), tokens.count(), table_.shape[1]);
  saved[input] = std::move(tokens);
  return y;
}

Tensor TokenEmbedding::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  saved[gradient] = wide(in, dy);
  return {};
}

void TokenEmbedding::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor tokens = std::exchange(saved[input], {});
  const Tensor dy = std::exchange(saved[gradient], {});
  kernels::embedding_backward_weight(in.pass.stream, tokens.data<std::int32_t>(), dy.f32(),
                                     gradients[0].f32(), tokens.count(), table_.shape[1]);
}

}  // namespace troupe::models
