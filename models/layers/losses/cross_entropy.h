#pragma once

#include "kernels/softmax_cross_entropy.h"
#include "models/layer.h"

namespace troupe::models {

/// The loss of each target in this form, from logits [..., classes] and the pass's targets [...] to
/// losses [targets]. In training the gradient of the logits overwrites the logits.
/// Evaluation smooths nothing and has no z-loss.
class CrossEntropy final : public Layer {
 public:
  explicit CrossEntropy(const kernels::CrossEntropyForm& form = {}) : form_(form) {}

  int saved() const override { return 1; }
  Reach reach() const override { return Reach::own_row; }
  Shape output(const Shape& input) const override { return {input.rows()}; }
  Tensor forward(const In& in, Tensor logits, SavedSpan saved, SavedSpan statistics) const override;
  /// Returns the gradient of the logits. Ignores `dy`: the chain of gradients begins here.
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  kernels::CrossEntropyForm form_;
};

}  // namespace troupe::models
