#include "models/layers/token_embedding.h"

#include <utility>

#include "kernels/embedding.h"
#include "models/layers/wide.h"

namespace troupe::models {
TokenEmbedding::TokenEmbedding(Parameter table) : table_(std::move(table)) {
  assert(table_.shape.rank() == 2);
}

Shape TokenEmbedding::output(const Shape& input) const {
  Shape shape = input;
  shape.append(table_.shape[1]);
  return shape;
}

Tensor TokenEmbedding::forward(const In& in, Tensor tokens, SavedSpan saved, SavedSpan) const {
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
