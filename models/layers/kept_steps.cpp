#include "models/layers/kept_steps.h"

#include <cassert>
#include <utility>

#include "kernels/between_layers.h"
#include "kernels/copy.h"
#include "models/layers/wide.h"

namespace troupe::models {
namespace {

/// Adds into new memory, because a layer may have saved a summand.
Tensor sum_with_kept(const Layer::In& in, const Tensor& a, const Tensor& b) {
  Tensor y = in.pass.stream.make(a.shape());
  kernels::sum_of(in.pass.stream, a, wide(in, b), y);
  return y;
}

Shape of_joint_width(const Shape& shape, Concat::Along along, std::int64_t width) {
  const int changed = along == Concat::Along::channels ? 1 : shape.rank() - 1;
  Shape made;
  for (int i = 0; i < shape.rank(); ++i) made.append(i == changed ? width : shape[i]);
  return made;
}

/// The rows of a tensor whose widths lie one behind the other, and the numbers of one width.
struct SideBySide {
  SideBySide(const Shape& shape, Concat::Along along, std::int64_t width)
      : rows(along == Concat::Along::channels ? shape[0] : shape.rows()),
        of_one(shape.count() / rows / width) {}

  std::int64_t rows, of_one;
};

/// Returns the reach of a layer that joins each row of the stream with that of a kept value.
Reach reach_joined(RowSource stream, const KeptSources& kept, const KeptInput& other) {
  return stream == kept[static_cast<std::size_t>(other.number)] ? Reach::own_row : Reach::all_rows;
}

}  // namespace

const Tensor& kept_value(const Layer::In& in, int number) {
  const Tensor& value = in.pass.frame->values[static_cast<std::size_t>(number)];
  assert(!value.empty() && "a kept value is read before it is kept");
  return value;
}

void give_back(const Layer::In& in, const KeptInput& kept, Tensor gradient) {
  if (!kept.has_gradient) return;
  Tensor& sum = in.pass.frame->gradients[static_cast<std::size_t>(kept.number)];
  sum = sum.empty() ? std::move(gradient) : sum_with_kept(in, gradient, sum);
}

Reach KeepStream::reach_from(RowSource& stream, KeptSources& kept) const {
  kept[static_cast<std::size_t>(number_)] = stream;
  return Reach::own_row;
}

Shape KeepStream::output_with(const Shape& input, KeptShapes& kept) const {
  kept[static_cast<std::size_t>(number_)] = input;
  return input;
}

Tensor KeepStream::forward(const In& in, Tensor x, SavedSpan, SavedSpan) const {
  in.pass.frame->values[static_cast<std::size_t>(number_)] = x;
  return x;
}

Tensor KeepStream::backward_input(const In& in, Tensor dy, SavedSpan) const {
  Tensor given = std::exchange(in.pass.frame->gradients[static_cast<std::size_t>(number_)], {});
  if (in.input_gradient == InputGradient::unwanted) return {};
  if (given.empty()) return dy;
  // Behind a step that takes another value, the stream has no gradient of its own.
  return dy.empty() ? std::move(given) : sum_with_kept(in, dy, given);
}

Reach TakeKept::reach_from(RowSource& stream, KeptSources& kept) const {
  stream = kept[static_cast<std::size_t>(kept_.number)];
  return Reach::own_row;
}

Shape TakeKept::output_with(const Shape&, KeptShapes& kept) const {
  return kept[static_cast<std::size_t>(kept_.number)];
}

Tensor TakeKept::forward(const In& in, Tensor, SavedSpan, SavedSpan) const {
  return kept_value(in, kept_.number);
}

Tensor TakeKept::backward_input(const In& in, Tensor dy, SavedSpan) const {
  give_back(in, kept_, std::move(dy));
  return {};
}

Reach AddKept::reach_from(RowSource& stream, KeptSources& kept) const {
  return reach_joined(stream, kept, kept_);
}

Tensor AddKept::forward(const In& in, Tensor x, SavedSpan, SavedSpan) const {
  return sum_with_kept(in, x, kept_value(in, kept_.number));
}

Tensor AddKept::backward_input(const In& in, Tensor dy, SavedSpan) const {
  give_back(in, kept_, dy);
  return dy;
}

Reach ConcatKept::reach_from(RowSource& stream, KeptSources& kept) const {
  return reach_joined(stream, kept, kept_);
}

Shape ConcatKept::output(const Shape& input) const {
  return of_joint_width(input, along_, width_ + kept_width_);
}

Tensor ConcatKept::forward(const In& in, Tensor x, SavedSpan, SavedSpan) const {
  Stream& stream = in.pass.stream;
  const Tensor own = wide(in, x), kept = wide(in, kept_value(in, kept_.number));
  Tensor y = stream.make(output(own.shape()));
  const auto [rows, of_one] = SideBySide(own.shape(), along_, width_);
  assert(kept.count() == rows * kept_width_ * of_one);
  const std::int64_t first = width_ * of_one, next = kept_width_ * of_one;
  kernels::copy_rows(stream, {own.f32(), first}, {y.f32(), first + next}, rows, first);
  kernels::copy_rows(stream, {kept.f32(), next}, {y.f32() + first, first + next}, rows, next);
  return y;
}

Tensor ConcatKept::backward_input(const In& in, Tensor dy, SavedSpan) const {
  Stream& stream = in.pass.stream;
  dy = wide(in, dy);
  const auto [rows, of_one] = SideBySide(dy.shape(), along_, width_ + kept_width_);
  const std::int64_t first = width_ * of_one, next = kept_width_ * of_one;
  if (kept_.has_gradient) {
    Tensor given = stream.make(of_joint_width(dy.shape(), along_, kept_width_));
    kernels::copy_rows(stream, {dy.f32() + first, first + next}, {given.f32(), next}, rows, next);
    give_back(in, kept_, std::move(given));
  }
  if (in.input_gradient == InputGradient::unwanted) return {};
  Tensor dx = stream.make(of_joint_width(dy.shape(), along_, width_));
  kernels::copy_rows(stream, {dy.f32(), first + next}, {dx.f32(), first}, rows, first);
  return dx;
}

}  // namespace troupe::models
