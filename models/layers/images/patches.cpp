#include "models/layers/images/patches.h"

#include <utility>

#include "kernels/patches.h"
#include "models/layers/wide.h"

namespace troupe::models {
namespace {

kernels::PatchShape patch_shape(const Shape& input, std::int64_t size) {
  assert(input.rank() == 4 && input[2] % size == 0 && input[3] % size == 0);
  return {
      .batch = input[0], .channels = input[1], .height = input[2], .width = input[3], .size = size};
}

}  // namespace

Shape Patches::output(const Shape& input) const {
  const auto shape = patch_shape(input, size_);
  return {shape.batch, shape.patches(), shape.channels * size_ * size_};
}

Tensor Patches::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Tensor y = in.pass.stream.make(output(x.shape()));
  kernels::cut_patches(in.pass.stream, patch_shape(x.shape(), size_), x.f32(), y.f32());
  saved[0] = std::move(x);  // For its shape.
  return y;
}

Tensor Patches::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  const Shape shape = std::exchange(saved[0], {}).shape();
  if (in.input_gradient == InputGradient::unwanted) return {};
  Tensor dx = in.pass.stream.make(shape);
  kernels::join_patches(in.pass.stream, patch_shape(shape, size_), wide(in, dy).f32(), dx.f32());
  return dx;
}

}  // namespace troupe::models
