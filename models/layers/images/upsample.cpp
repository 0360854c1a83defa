#include "models/layers/images/upsample.h"

#include <cassert>

#include "kernels/pool.h"
#include "models/layers/wide.h"

namespace troupe::models {
namespace {

kernels::PoolShape windows_of(const Shape& large, std::int64_t factor) {
  assert(large.rank() == 4);
  return {.images = large[0] * large[1],
          .height = large[2],
          .width = large[3],
          .kernel = factor,
          .stride = factor};
}

}  // namespace

Shape Upsample::output(const Shape& input) const {
  return {input[0], input[1], input[2] * factor_, input[3] * factor_};
}

Tensor Upsample::forward(const In& in, Tensor x, SavedSpan, SavedSpan) const {
  Tensor y = in.pass.stream.make(output(x.shape()));
  kernels::upsample_forward(in.pass.stream, windows_of(y.shape(), factor_), wide(in, x).f32(),
                            y.f32());
  return y;
}

Tensor Upsample::backward_input(const In& in, Tensor dy, SavedSpan) const {
  if (in.input_gradient == InputGradient::unwanted) return {};
  const Shape& large = dy.shape();
  Tensor dx = in.pass.stream.make({large[0], large[1], large[2] / factor_, large[3] / factor_});
  kernels::upsample_backward(in.pass.stream, windows_of(large, factor_), wide(in, dy).f32(),
                             dx.f32());
  return dx;
}

}  // namespace troupe::models
