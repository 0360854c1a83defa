#pragma once

#include <string>

#include "models/layer.h"

namespace troupe::models {

/// Batch normalization: brings each channel of images [batch, channels, height, width] to mean 0
/// and variance 1, then scales and shifts it. Training uses the statistics of the micro-batch,
/// evaluation the running ones.
class BatchNorm final : public Layer {
 public:
  /// The parameters are `name`.weight and `name`.bias; the buffers are `name`.running_mean and
  /// `name`.running_var.
  BatchNorm(std::string name, std::int64_t channels, float eps);

  std::vector<Parameter> parameters() const override;
  std::vector<Buffer> buffers() const override;
  int saved() const override { return 4; }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  enum Saved { input, mean, rstd, gradient };

  std::string name_;
  std::int64_t channels_;
  float eps_;
};

}  // namespace troupe::models
