#pragma once

#include <string>

#include "models/layers/norm.h"

namespace troupe::models {

/// Layer normalization: brings each row to mean 0 and variance 1, then scales and shifts it.
class LayerNorm final : public Norm {
 public:
  /// The parameters are `name`.weight and `name`.bias.
  LayerNorm(std::string name, std::int64_t width, float eps);

  std::vector<Parameter> parameters() const override;
  int saved() const override { return 3; }
  Reach reach() const override { return Reach::own_row; }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  OfSum forward_of_sum(const In& in, const Tensor& a, const Tensor& b,
                       SavedSpan saved) const override;
  Tensor backward_input_plus(const In& in, Tensor dy, const Tensor& more, Tensor& rounded,
                             SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  // `moments` is [2, rows]: the means, then 1 / deviation.
  enum Saved { input, moments, gradient };

  std::string name_;
  std::int64_t width_;
  float eps_;
};

}  // namespace troupe::models
