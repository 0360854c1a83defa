#pragma once

#include "kernels/activations.h"
#include "models/layer.h"

namespace troupe::models {

/// gelu(x), elementwise and in fp32, for networks whose products cannot include it (FeedForward).
class SeparateGelu final : public Layer {
 public:
  explicit SeparateGelu(kernels::Gelu form) : form_(form) {}

  int saved() const override { return 1; }
  Reach reach() const override { return Reach::own_row; }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  kernels::Gelu form_;
};

}  // namespace troupe::models
