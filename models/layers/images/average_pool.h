#pragma once

#include "models/layer.h"

namespace troupe::models {

/// The mean of each channel: images [batch, channels, height, width] to [batch, channels].
class AveragePool final : public Layer {
 public:
  int saved() const override { return 1; }
  Shape output(const Shape& input) const override { return {input[0], input[1]}; }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
};

}  // namespace troupe::models
