#pragma once

#include "models/layer.h"

namespace troupe::models {

/// A trained row that precedes each sample: [batch, length, width] to [batch, length + 1, width].
class ClassToken final : public Layer {
 public:
  explicit ClassToken(Parameter token);

  std::vector<Parameter> parameters() const override { return {token_}; }
  int saved() const override { return 1; }
  Shape output(const Shape& input) const override { return {input[0], input[1] + 1, input[2]}; }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  Parameter token_;
};

/// The first row of each sample: [batch, length, width] to [batch, width].
class FirstRow final : public Layer {
 public:
  int saved() const override { return 1; }
  Shape output(const Shape& input) const override { return {input[0], input[2]}; }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
};

}  // namespace troupe::models
