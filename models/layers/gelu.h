#pragma once

#include "models/layer.h"

namespace troupe::models {

/// gelu(x), elementwise: with the error function, or with tanh, which comes close to it.
class Gelu final : public Layer {
 public:
  enum class Form : std::uint8_t { erf, tanh };
  explicit Gelu(Form form) : form_(form) {}

  int saved() const override { return 1; }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;

 private:
  Form form_;
};

}  // namespace troupe::models
