#pragma once

#include "models/layer.h"

namespace troupe::models {

/// max(x, 0), elementwise.
class Relu final : public Layer {
 public:
  int saved() const override { return 1; }
  Reach reach() const override { return Reach::own_row; }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
};

}  // namespace troupe::models
