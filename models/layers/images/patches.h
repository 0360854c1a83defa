#pragma once

#include "models/layer.h"

namespace troupe::models {

/// Square patches of images [batch, channels, height, width], row by row: [batch, patches, channels
/// * size * size].
class Patches final : public Layer {
 public:
  /// The size must divide height and width.
  explicit Patches(std::int64_t size) : size_(size) {}

  int saved() const override { return 1; }
  Shape output(const Shape& input) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  std::int64_t size_;
};

}  // namespace troupe::models
