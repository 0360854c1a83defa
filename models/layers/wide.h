#pragma once

#include "kernels/rounding.h"
#include "models/layer.h"

namespace troupe::models {

/// Converts another layer's output or gradient to fp32, for layers that compute in fp32 only.
inline Tensor wide(const Layer::In& in, const Tensor& given) {
  return kernels::as_type(in.pass.stream, given, DType::f32);
}

}  // namespace troupe::models
