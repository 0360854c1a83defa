// Conversions between 32-bit or 16-bit numbers in memory and the floats that kernels compute with.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

namespace troupe::kernels::cuda {

__device__ inline float wide(float x) { return x; }
template <class Number>
__device__ float wide(Number x) {
  return x.to_float();
}

template <class Number>
__device__ Number narrow(float x) {
  if constexpr (std::is_same_v<Number, float>)
    return x;
  else
    return Number::from(x);
}

}  // namespace troupe::kernels::cuda
