#pragma once

#include "models/layer.h"

namespace troupe::models {

/// Dropout: sets random numbers to zero in training and scales up the remaining ones. The mask is a
/// function of seed, step, sample and place in the model, so the backward pass draws it again.
class Dropout final : public Layer {
 public:
  /// `operation` is the layer's index among all layers of the model that draw.
  Dropout(double rate, std::uint32_t operation)
      : rate_(static_cast<float>(rate)), operation_(operation) {}

  Reach reach() const override { return Reach::own_row; }
  GradientUse gradient_use() const override {
    return rate_ == 0 ? GradientUse::passed_on : GradientUse::any;
  }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  Tensor dropped(const In& in, Tensor x) const;

  float rate_;
  std::uint32_t operation_;
};

}  // namespace troupe::models
