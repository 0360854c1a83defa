#pragma once

#include <string>

#include "models/layers/norm.h"

namespace troupe::models {

/// RMS normalization: divides each row by the root of its mean square, then scales it.
class RmsNorm final : public Norm {
 public:
  /// The parameter is `name`.weight; `offset` is added to it.
  RmsNorm(std::string name, std::int64_t width, float eps, float offset = 0);

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
  enum Saved { input, rstd, gradient };

  std::string name_;
  std::int64_t width_;
  float eps_;
  float offset_;

  /// Returns the scales: the weights plus the offset.
  Tensor scales(const In& in) const;
};

}  // namespace troupe::models
