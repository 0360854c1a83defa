#pragma once

#include <vector>

#include "models/layers/norm.h"
#include "models/layers/parts.h"

namespace troupe::models {

/// The residual stream of a transformer block: x += inner(norm(x)) for each branch. The stream and
/// its gradient are in fp32. One kernel adds a branch's output to the stream and computes the next
/// norm; one kernel computes a norm's gradient, adds it to that of the stream and rounds the sum
/// for products in 16 bits.
class ResidualStream final : public Layer {
 public:
  struct Branch {
    NormPtr norm;
    LayerPtr inner;
  };
  explicit ResidualStream(std::vector<Branch> branches);

  std::vector<Parameter> parameters() const override { return parts_.parameters(); }
  std::vector<Buffer> buffers() const override { return parts_.buffers(); }
  int saved() const override { return parts_.saved(); }
  Reach reach_from(RowSource& stream, KeptSources& kept) const override {
    return parts_.reach_of_branches(stream, kept);
  }
  int cached() const override { return parts_.cached(); }
  Work work(const Shape& input) const override {
    KeptShapes none;
    return work_with(input, none);
  }
  Work work_with(const Shape& input, KeptShapes& kept) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  int branch_count() const { return static_cast<int>(branches_.size()); }
  bool takes_operand(int branch, kernels::Precision precision) const;
  const Norm& norm(int branch) const { return *branches_[static_cast<std::size_t>(branch)].norm; }

  std::vector<Branch> branches_;
  Parts parts_;  // The norm and the inner layer of each branch.
};

/// Makes the stream of a block with two branches.
LayerPtr residual_stream(ResidualStream::Branch first, ResidualStream::Branch second);

}  // namespace troupe::models
