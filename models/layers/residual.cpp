#include "models/layers/residual.h"

#include <utility>

#include "kernels/between_layers.h"
#include "models/layers/wide.h"

namespace troupe::models {
namespace {

enum Branch { inner_branch, shortcut_branch };

// Adds in fp32, so that no layer's contribution is rounded away, and into new memory, because a
// branch may have saved its own output.
Tensor sum(const Layer::In& in, const Tensor& a, const Tensor& b) {
  Tensor y = in.pass.stream.make(a.shape());
  kernels::sum_of(in.pass.stream, a, wide(in, b), y);
  return y;
}

}  // namespace

Residual::Residual(LayerPtr inner, LayerPtr shortcut)
    : inner_(std::move(inner)), shortcut_(std::move(shortcut)) {
  parts_.add(*inner_);
  if (shortcut_) parts_.add(*shortcut_);
}

Work Residual::work_with(const Shape& input, KeptShapes& kept) const {
  Work work = inner_->work_with(input, kept);
  if (shortcut_) work.add(shortcut_->work_with(input, kept));
  work.add(elementwise_work(input, output(input), Trained::no));
  return work;
}

Tensor Residual::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const {
  const Tensor y = parts_.forward(inner_branch, in, x, saved, statistics);
  if (shortcut_) x = parts_.forward(shortcut_branch, in, std::move(x), saved, statistics);
  return sum(in, y, x);
}

Tensor Residual::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  const Tensor dx = parts_.backward_input(inner_branch, in, dy, saved);
  if (shortcut_) dy = parts_.backward_input(shortcut_branch, in, std::move(dy), saved);
  if (in.input_gradient == InputGradient::unwanted) return {};
  return sum(in, dx, dy);
}

void Residual::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  for (int i = 0; i < parts_.count(); ++i) parts_.backward_weight(i, in, saved, gradients);
}

}  // namespace troupe::models
