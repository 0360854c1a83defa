#pragma once

#include "kernels/activations.h"
#include "models/layer.h"
#include "models/layers/projection.h"

namespace troupe::models {

/// y = gelu(x up + up_bias) down + down_bias: the feed-forward network of a transformer block. It
/// is one layer so that a product can include gelu() or its gradient (kernels/linear_gelu.h).
class FeedForward final : public Layer {
 public:
  struct Part {
    Parameter matrix, bias;
  };
  FeedForward(Part up, Part down, kernels::Gelu form);

  std::vector<Parameter> parameters() const override;
  int saved() const override { return all_saved; }
  Reach reach() const override { return Reach::own_row; }
  GradientUse gradient_use() const override { return GradientUse::as_operand; }
  Shape output(const Shape& input) const override { return down_.output(input); }
  Work work(const Shape& input) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  // Until the backward pass, the slot of the up-gradient's operand holds the input of gelu().
  enum Saved {
    input,
    hidden,
    pre,
    up_operand = pre,
    up_gradient,
    down_operand,
    down_gradient,
    all_saved
  };
  enum Slot { up_matrix, up_bias, down_matrix, down_bias };

  Projection up_, down_;
  Parameter up_bias_, down_bias_;
  kernels::Gelu form_;
};

}  // namespace troupe::models
