#pragma once

#include <cstdint>
#include <vector>

#include "models/layers/parts.h"

namespace troupe::models {

/// Puts what branches make of the same input side by side, in their order and in fp32: the channels
/// of images, or the numbers of rows. All other sizes of their results are equal.
class Concat final : public Layer {
 public:
  enum class Along : std::uint8_t {
    channels,  // [batch, channels, height, width]
    last,      // [..., width]
  };
  struct Branch {
    LayerPtr layer;
    std::int64_t width = 0;  // The channels, or the width, of its result.
  };
  Concat(Along along, std::vector<Branch> branches);

  std::vector<Parameter> parameters() const override { return parts_.parameters(); }
  std::vector<Buffer> buffers() const override { return parts_.buffers(); }
  int saved() const override { return parts_.saved(); }
  Reach reach_from(RowSource& stream, KeptSources& kept) const override {
    return parts_.reach_of_branches(stream, kept);
  }
  int cached() const override { return parts_.cached(); }
  Shape output(const Shape& input) const override;
  Work work(const Shape& input) const override {
    KeptShapes none;
    return work_with(input, none);
  }
  Work work_with(const Shape& input, KeptShapes& kept) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  Shape with_width(const Shape& shape, std::int64_t width) const;

  Along along_;
  std::vector<Branch> branches_;
  Parts parts_;
  std::int64_t width_ = 0;  // The sum over the branches.
};

}  // namespace troupe::models
