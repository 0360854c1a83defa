#pragma once

#include "kernels/rounding.h"
#include "models/layer.h"

namespace troupe::models {

/// What another layer gave, in fp32: for those that compute in nothing else.
inline Tensor wide(const Layer::In& in, const Tensor& given) {
  return kernels::as_type(in.pass.stream, given, DType::f32);
}

}  // namespace troupe::models
