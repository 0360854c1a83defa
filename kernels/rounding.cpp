#include "kernels/rounding.h"

#include <cassert>

namespace troupe::kernels {

Tensor rounded(Stream& stream, const float* numbers, const Shape& shape, DType type) {
  Tensor made = stream.make(shape, type);
  if (type == DType::bf16) {
    round_all(stream, numbers, made.data<BFloat16>(), made.count());
  } else {
    assert(type == DType::f16);
    round_all(stream, numbers, made.data<Float16>(), made.count());
  }
  return made;
}

Tensor as_type(Stream& stream, const Tensor& numbers, DType type) {
  if (numbers.dtype() == type) return numbers;
  if (type != DType::f32) return rounded(stream, numbers.f32(), numbers.shape(), type);
  Tensor wide = stream.make(numbers.shape());
  if (numbers.dtype() == DType::bf16) {
    widen_all(stream, numbers.data<BFloat16>(), wide.f32(), numbers.count());
  } else {
    assert(numbers.dtype() == DType::f16);
    widen_all(stream, numbers.data<Float16>(), wide.f32(), numbers.count());
  }
  return wide;
}

}  // namespace troupe::kernels
