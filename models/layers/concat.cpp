#include "models/layers/concat.h"

#include <utility>

#include "kernels/between_layers.h"
#include "kernels/copy.h"
#include "models/layers/wide.h"

namespace troupe::models {

Concat::Concat(Along along, std::vector<Branch> branches)
    : along_(along), branches_(std::move(branches)) {
  for (const auto& branch : branches_) {
    parts_.add(*branch.layer);
    width_ += branch.width;
  }
}

Shape Concat::with_width(const Shape& shape, std::int64_t width) const {
  const int changed = along_ == Along::channels ? 1 : shape.rank() - 1;
  Shape made;
  for (int i = 0; i < shape.rank(); ++i) made.append(i == changed ? width : shape[i]);
  return made;
}

Shape Concat::output(const Shape& input) const {
  return with_width(branches_.front().layer->output(input), width_);
}

Work Concat::work_with(const Shape& input, KeptShapes& kept) const {
  Work work = elementwise_work(output(input), output(input), Trained::no);
  for (const auto& branch : branches_) work.add(branch.layer->work_with(input, kept));
  return work;
}

Tensor Concat::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const {
  Tensor y;
  std::int64_t first = 0;
  for (int i = 0; i < parts_.count(); ++i) {
    const Tensor part = wide(in, parts_.forward(i, in, x, saved, statistics));
    if (y.empty()) y = in.pass.stream.make(with_width(part.shape(), width_));
    // The numbers of a width, such as the pixels of a channel, and the widths that follow.
    const std::int64_t width = branches_[static_cast<std::size_t>(i)].width;
    const std::int64_t rows = along_ == Along::channels ? part.shape()[0] : part.shape().rows();
    const std::int64_t of_one = part.count() / rows / width;
    kernels::copy_rows(in.pass.stream, {part.f32(), width * of_one},
                       {y.f32() + first * of_one, width_ * of_one}, rows, width * of_one);
    first += width;
  }
  return y;
}

Tensor Concat::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Stream& stream = in.pass.stream;
  dy = wide(in, dy);
  const std::int64_t rows = along_ == Along::channels ? dy.shape()[0] : dy.shape().rows();
  const std::int64_t of_one = dy.count() / rows / width_;
  Tensor dx;
  std::int64_t first = 0;
  for (int i = 0; i < parts_.count(); ++i) {
    const std::int64_t width = branches_[static_cast<std::size_t>(i)].width;
    Tensor part = stream.make(with_width(dy.shape(), width));
    kernels::copy_rows(stream, {dy.f32() + first * of_one, width_ * of_one},
                       {part.f32(), width * of_one}, rows, width * of_one);
    first += width;
    Tensor share = parts_.backward_input(i, in, std::move(part), saved);
    if (in.input_gradient == InputGradient::unwanted) continue;
    if (dx.empty()) {
      dx = wide(in, share);
      continue;
    }
    Tensor sum = stream.make(dx.shape());
    kernels::sum_of(stream, share, dx, sum);
    dx = std::move(sum);
  }
  return dx;
}

void Concat::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  for (int i = 0; i < parts_.count(); ++i) parts_.backward_weight(i, in, saved, gradients);
}

}  // namespace troupe::models
