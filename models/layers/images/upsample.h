#pragma once

#include <cstdint>

#include "models/layer.h"

namespace troupe::models {

/// Enlarges images [batch, channels, height, width] by a whole factor: each pixel becomes a square
/// of equal numbers. Computes in fp32.
class Upsample final : public Layer {
 public:
  explicit Upsample(std::int64_t factor) : factor_(factor) {}

  Shape output(const Shape& input) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  std::int64_t factor_;
};

}  // namespace troupe::models
