#include "models/layers/residual_stream.h"

#include <utility>

#include "kernels/between_layers.h"
#include "models/layers/wide.h"

namespace troupe::models {
namespace {

int norm_of(int branch) { return 2 * branch; }
int inner_of(int branch) { return 2 * branch + 1; }

}  // namespace

ResidualStream::ResidualStream(std::vector<Branch> branches) : branches_(std::move(branches)) {
  for (const auto& branch : branches_) {
    parts_.add(*branch.norm);
    parts_.add(*branch.inner);
  }
}

Work ResidualStream::work_with(const Shape& input, KeptShapes& kept) const {
  Work work;
  for (const auto& branch : branches_) {
    work.add(branch.norm->work_with(input, kept));
    work.add(branch.inner->work_with(input, kept));
    work.add(elementwise_work(input, input, Trained::no));
  }
  return work;
}

Tensor ResidualStream::forward(const In& in, Tensor x, SavedSpan saved,
                               SavedSpan statistics) const {
  Stream& stream = in.pass.stream;
  x = wide(in, x);
  Tensor y = parts_.forward(norm_of(0), in, x, saved, statistics);
  y = parts_.forward(inner_of(0), in, std::move(y), saved, statistics);
  for (int b = 1; b < branch_count(); ++b) {
    auto normal = norm(b).forward_of_sum(parts_.of_part(norm_of(b), in), y, x,
                                         parts_.saved_by(norm_of(b), saved));
    x = std::move(normal.sum);
    y = parts_.forward(inner_of(b), in, std::move(normal.y), saved, statistics);
  }
  Tensor sum = stream.make(x.shape());
  kernels::sum_of(stream, y, x, sum);
  return sum;
}

/// Returns whether a branch wants its output's gradient in 16 bits.
bool ResidualStream::takes_operand(int branch, kernels::Precision precision) const {
  return kernels::activation_type(precision) != DType::f32 &&
         branches_[static_cast<std::size_t>(branch)].inner->gradient_use() ==
             GradientUse::as_operand;
}

Tensor ResidualStream::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  In wanted = in;
  wanted.input_gradient = InputGradient::wanted;
  dy = wide(in, dy);
  Tensor rounded;  // dy in 16 bits, if the next inner layer wants no more.
  for (int b = branch_count() - 1; b >= 0; --b) {
    Tensor dnormal = parts_.backward_input(
        inner_of(b), wanted, rounded.empty() ? dy : std::exchange(rounded, {}), saved);
    if (b > 0 && takes_operand(b - 1, in.pass.precision))
      rounded = in.pass.stream.make(dy.shape(), kernels::activation_type(in.pass.precision));
    dy = norm(b).backward_input_plus(parts_.of_part(norm_of(b), b > 0 ? wanted : in),
                                     std::move(dnormal), dy, rounded,
                                     parts_.saved_by(norm_of(b), saved));
  }
  return dy;
}

void ResidualStream::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  for (int i = parts_.count() - 1; i >= 0; --i) parts_.backward_weight(i, in, saved, gradients);
}

LayerPtr residual_stream(ResidualStream::Branch first, ResidualStream::Branch second) {
  std::vector<ResidualStream::Branch> branches;
  branches.push_back(std::move(first));
  branches.push_back(std::move(second));
  return std::make_unique<const ResidualStream>(std::move(branches));
}

}  // namespace troupe::models
