#include "models/layers/parallel.h"

#include <utility>

#include "kernels/between_layers.h"
#include "models/layers/wide.h"

namespace troupe::models {
namespace {

/// Adds into new memory, because a branch may have saved its own output.
Tensor sum(const Layer::In& in, const Tensor& first, const Tensor& next) {
  Tensor y = in.pass.stream.make(next.shape());
  kernels::sum_of(in.pass.stream, next, wide(in, first), y);
  return y;
}

}  // namespace

Parallel::Parallel(std::vector<LayerPtr> branches) : branches_(std::move(branches)) {
  for (const auto& branch : branches_) parts_.add(*branch);
}

Work Parallel::work_with(const Shape& input, KeptShapes& kept) const {
  Work work;
  for (const auto& branch : branches_) work.add(branch->work_with(input, kept));
  for (std::size_t i = 1; i < branches_.size(); ++i)
    work.add(elementwise_work(output(input), output(input), Trained::no));
  return work;
}

Tensor Parallel::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const {
  Tensor y = parts_.forward(0, in, x, saved, statistics);
  for (int i = 1; i < parts_.count(); ++i)
    y = sum(in, y, parts_.forward(i, in, x, saved, statistics));
  return y;
}

Tensor Parallel::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Tensor dx = parts_.backward_input(0, in, dy, saved);
  for (int i = 1; i < parts_.count(); ++i) {
    const Tensor more = parts_.backward_input(i, in, dy, saved);
    if (in.input_gradient == InputGradient::wanted) dx = sum(in, dx, more);
  }
  return dx;
}

void Parallel::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  for (int i = 0; i < parts_.count(); ++i) parts_.backward_weight(i, in, saved, gradients);
}

}  // namespace troupe::models
