#include "models/layers/sequence.h"

#include <utility>

namespace troupe::models {

Sequence::Sequence(std::vector<LayerPtr> layers) : layers_(std::move(layers)) {
  for (const auto& layer : layers_) parts_.add(*layer);
}

GradientUse Sequence::gradient_use() const {
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer)
    if (const auto use = (*layer)->gradient_use(); use != GradientUse::passed_on) return use;
  return GradientUse::passed_on;
}

Tensor Sequence::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const {
  for (int i = 0; i < parts_.count(); ++i)
    x = parts_.forward(i, in, std::move(x), saved, statistics);
  return x;
}

Tensor Sequence::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  In inner = in;
  inner.input_gradient = InputGradient::wanted;
  for (int i = parts_.count() - 1; i > 0; --i)
    dy = parts_.backward_input(i, inner, std::move(dy), saved);
  return parts_.backward_input(0, in, std::move(dy), saved);
}

void Sequence::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  for (int i = parts_.count() - 1; i >= 0; --i) parts_.backward_weight(i, in, saved, gradients);
}

}  // namespace troupe::models
