#pragma once

#include "models/layers/parts.h"

namespace troupe::models {

/// y = inner(x) + x, or inner(x) + shortcut(x) if the shapes differ.
class Residual final : public Layer {
 public:
  explicit Residual(LayerPtr inner, LayerPtr shortcut = nullptr);

  std::vector<Parameter> parameters() const override { return parts_.parameters(); }
  std::vector<Buffer> buffers() const override { return parts_.buffers(); }
  int saved() const override { return parts_.saved(); }
  Reach reach_from(RowSource& stream, KeptSources& kept) const override {
    return parts_.reach_of_branches(stream, kept);
  }
  int cached() const override { return parts_.cached(); }
  Shape output(const Shape& input) const override { return inner_->output(input); }
  Work work(const Shape& input) const override {
    KeptShapes none;
    return work_with(input, none);
  }
  Work work_with(const Shape& input, KeptShapes& kept) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  LayerPtr inner_;
  LayerPtr shortcut_;
  Parts parts_;
};

}  // namespace troupe::models
