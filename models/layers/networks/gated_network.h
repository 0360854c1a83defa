#pragma once

#include "models/layer.h"
#include "models/layers/lora.h"
#include "models/layers/networks/gates.h"
#include "models/layers/projection.h"

namespace troupe::models {

/// y = f(x gate) * (x up): the first half of a gated feed-forward network (SwiGLU, GeGLU).
class GatedNetwork final : public Layer {
 public:
  GatedNetwork(Parameter gate, Parameter up, Gate form);

  std::vector<Parameter> parameters() const override;
  int saved() const override { return 3; }
  Reach reach() const override { return Reach::own_row; }
  Shape output(const Shape& input) const override { return gate_.output(input); }
  Work work(const Shape& input) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  // backward_input replaces gate and up by the operands of their gradients.
  enum Saved { input, gate, up };
  enum Slot { gate_slot, up_slot };

  Projection gate_, up_;
  Additions additions_;
  Gate form_;
};

}  // namespace troupe::models
