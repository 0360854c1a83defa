#pragma once

#include <vector>

#include "models/layers/parts.h"

namespace troupe::models {

/// Layers that run one after another.
class Sequence final : public Layer {
 public:
  explicit Sequence(std::vector<LayerPtr> layers);

  std::vector<Parameter> parameters() const override { return parts_.parameters(); }
  std::vector<Buffer> buffers() const override { return parts_.buffers(); }
  int saved() const override { return parts_.saved(); }
  Reach reach_from(RowSource& stream, KeptSources& kept) const override {
    return parts_.reach_from(stream, kept);
  }
  int cached() const override { return parts_.cached(); }
  GradientUse gradient_use() const override;
  Shape output(const Shape& input) const override { return parts_.output(input); }
  Work work(const Shape& input) const override { return parts_.work(input); }
  Shape output_with(const Shape& input, KeptShapes& kept) const override {
    return parts_.output_with(input, kept);
  }
  Work work_with(const Shape& input, KeptShapes& kept) const override {
    return parts_.work_with(input, kept);
  }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  std::vector<LayerPtr> layers_;
  Parts parts_;
};

/// Makes a sequence: in_sequence(first, second, ...).
template <class... Layers>
LayerPtr in_sequence(Layers... layers) {
  std::vector<LayerPtr> list;
  (list.push_back(std::move(layers)), ...);
  return std::make_unique<const Sequence>(std::move(list));
}

}  // namespace troupe::models
