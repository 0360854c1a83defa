#pragma once

#include "models/layer.h"

namespace troupe::models {

/// y = factor x, elementwise and in fp32.
class Scale final : public Layer {
 public:
  explicit Scale(float factor) : factor_(factor) {}

  Reach reach() const override { return Reach::own_row; }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  Tensor scaled(const In& in, const Tensor& x) const;

  float factor_;
};

/// y = cap tanh(x / cap), elementwise and in fp32.
class SoftCap final : public Layer {
 public:
  explicit SoftCap(float cap) : cap_(cap) {}

  int saved() const override { return 1; }
  Reach reach() const override { return Reach::own_row; }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  float cap_;
};

}  // namespace troupe::models
