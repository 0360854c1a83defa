#pragma once

#include "kernels/conv2d.h"
#include "models/layer.h"

namespace troupe::models {

/// A convolution of images [batch, channels, height, width] with square kernels, without bias. The
/// output channels of a group read the input channels of the same group.
class Conv2d final : public Layer {
 public:
  /// The weight is [out_channels, in_channels / groups, kernel, kernel].
  Conv2d(Parameter weight, std::int64_t stride, std::int64_t padding, std::int64_t groups = 1);

  std::vector<Parameter> parameters() const override { return {weight_}; }
  int saved() const override { return 2; }
  Shape output(const Shape& input) const override;
  Work work(const Shape& input) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  enum Saved { input, gradient };

  kernels::Conv2dShape kernel_shape(const Shape& input) const;

  Parameter weight_;
  std::int64_t stride_;
  std::int64_t padding_;
  std::int64_t groups_;
};

}  // namespace troupe::models
