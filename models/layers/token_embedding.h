#pragma once

#include <optional>

#include "models/layer.h"

namespace troupe::models {

/// A table [vocabulary, width] whose rows replace tokens [batch, length]. Every token must lie
/// within the vocabulary. The tokens are the stream, or a kept value: then the stream ends here
/// without a gradient, and begins anew.
class TokenEmbedding final : public Layer {
 public:
  /// `kept` is the number of the kept value that has the tokens, if they are not the stream.
  explicit TokenEmbedding(Parameter table, std::optional<int> kept = {});

  std::vector<Parameter> parameters() const override { return {table_}; }
  int saved() const override { return 2; }
  Reach reach() const override { return Reach::own_row; }
  Reach reach_from(RowSource& stream, KeptSources& kept) const override;
  Shape output(const Shape& input) const override;
  Shape output_with(const Shape& input, KeptShapes& kept) const override;
  Work work_with(const Shape& input, KeptShapes& kept) const override;
  Tensor forward(const In& in, Tensor tokens, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  enum Saved { input, gradient };

  const Shape& shape_of_tokens(const Shape& input, const KeptShapes& kept) const;

  Parameter table_;
  std::optional<int> kept_;
};

}  // namespace troupe::models
