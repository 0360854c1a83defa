#pragma once

#include "kernels/element_loss.h"
#include "models/layer.h"

namespace troupe::models {

/// The loss of each number of the output, from an output and the pass's targets of the same shape,
/// in fp32, to losses [targets].
class ElementLoss final : public Layer {
 public:
  explicit ElementLoss(kernels::ElementLoss loss) : loss_(loss) {}

  int saved() const override { return 1; }
  Reach reach() const override { return Reach::own_row; }
  Shape output(const Shape& input) const override { return {input.count()}; }
  Tensor forward(const In& in, Tensor z, SavedSpan saved, SavedSpan statistics) const override;
  /// Returns the gradient of the output. Ignores `dy`: the chain of gradients begins here.
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  kernels::ElementLoss loss_;
};

}  // namespace troupe::models
