#pragma once

#include <vector>

#include "models/layers/parts.h"

namespace troupe::models {

/// y = the sum of what branches make of the same input, in their order and in fp32. There are two
/// branches or more, and their results have one shape.
class Parallel final : public Layer {
 public:
  explicit Parallel(std::vector<LayerPtr> branches);

  std::vector<Parameter> parameters() const override { return parts_.parameters(); }
  std::vector<Buffer> buffers() const override { return parts_.buffers(); }
  int saved() const override { return parts_.saved(); }
  Reach reach_from(RowSource& stream, KeptSources& kept) const override {
    return parts_.reach_of_branches(stream, kept);
  }
  int cached() const override { return parts_.cached(); }
  Shape output(const Shape& input) const override { return branches_.front()->output(input); }
  Work work(const Shape& input) const override {
    KeptShapes none;
    return work_with(input, none);
  }
  Work work_with(const Shape& input, KeptShapes& kept) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  std::vector<LayerPtr> branches_;
  Parts parts_;
};

}  // namespace troupe::models
