#pragma once

#include "models/layer.h"

namespace troupe::models {

/// The loss of each target: logits [..., classes] and the pass's targets [...] in, losses [targets]
/// out. Uses its input up: the gradient of the logits takes their place in training.
class CrossEntropy final : public Layer {
 public:
  int saved() const override { return 1; }
  Shape output(const Shape& input) const override { return {input.rows()}; }
  Tensor forward(const In& in, Tensor logits, SavedSpan saved, SavedSpan statistics) const override;
  /// The chain of gradients begins here: `dy` is not looked at.
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
};

}  // namespace troupe::models
