#pragma once

#include <optional>

#include "models/layer.h"
#include "models/layers/lora.h"
#include "models/layers/projection.h"

namespace troupe::models {

/// y = x w + bias over the last dimension.
class Linear final : public Layer {
 public:
  explicit Linear(Parameter weight, std::optional<Parameter> bias = {});

  std::vector<Parameter> parameters() const override;
  int saved() const override { return 3; }
  Reach reach() const override { return Reach::own_row; }
  GradientUse gradient_use() const override { return GradientUse::as_operand; }
  Shape output(const Shape& input) const override { return weight_.output(input); }
  Work work(const Shape& input) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  enum Saved { input, gradient, gradient_operand };

  Projection weight_;
  std::optional<Parameter> bias_;
  Additions additions_;
};

}  // namespace troupe::models
