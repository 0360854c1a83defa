#pragma once

#include "models/layer.h"

namespace troupe::models {

/// A table [vocabulary, width] whose rows replace tokens [batch, length]. Every token must lie
/// within the vocabulary.
class TokenEmbedding final : public Layer {
 public:
  explicit TokenEmbedding(Parameter table);

  std::vector<Parameter> parameters() const override { return {table_}; }
  int saved() const override { return 2; }
  Reach reach() const override { return Reach::own_row; }
  Shape output(const Shape& input) const override;
  Tensor forward(const In& in, Tensor tokens, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  enum Saved { input, gradient };

  Parameter table_;
};

}  // namespace troupe::models
