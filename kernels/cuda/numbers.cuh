// A number as it lies in memory, of 32 or 16 bits, and as it is computed with.
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
