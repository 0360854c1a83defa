// GELU and its derivative for one number. The formulas are from kernels/cpu/activations.cpp,
// which explains them.
#pragma once

#include "kernels/activations.h"
#include "kernels/cuda/math.cuh"

namespace troupe::kernels::cuda {

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + exp_of(-x)); }
__device__ inline float normal_distribution(float x) {
  return fmaf(0.5f, erf_of(x * 0.70710678f), 0.5f);
}

template <Gelu form>
struct GeluOf;

template <>
struct GeluOf<Gelu::tanh> {
  static constexpr float a = 1.5957691216f;
  static constexpr float b = 0.07135481628f;

  __device__ static float value(float x) {
    return x / (1.0f + exp_of(x * polynomial(x * x, -a, -b)));
  }
  __device__ static float slope(float x) {
    const float input = at_least(at_most(x, 10.0f), -10.0f);
    const float square = input * input;
    const float s = sigmoid(input * polynomial(square, a, b));
    const float inner = input * polynomial(square, a, 3 * b);
    return fmaf(s * (1.0f - s), inner, s);
  }
};

template <>
struct GeluOf<Gelu::erf> {
  __device__ static float value(float x) { return x * normal_distribution(x); }
  __device__ static float slope(float x) {
    const float density = 0.39894228f * exp_of(x * x * -0.5f);
    return fmaf(x, density, normal_distribution(x));
  }
};

}  // namespace troupe::kernels::cuda
