#pragma once

#include <string>

#include "models/layer.h"

namespace troupe::models {

/// Group normalization: brings each group of channels of each image [batch, channels, height,
/// width] to mean 0 and variance 1, then scales and shifts each channel. No sample depends on
/// another one.
class GroupNorm final : public Layer {
 public:
  /// The parameters are `name`.weight and `name`.bias. The number of groups divides the channels.
  GroupNorm(std::string name, std::int64_t channels, std::int64_t groups, float eps);

  std::vector<Parameter> parameters() const override;
  int saved() const override { return 3; }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  enum Saved { normal, rstd, gradient };

  std::string name_;
  std::int64_t channels_;
  std::int64_t groups_;
  float eps_;
};

}  // namespace troupe::models
