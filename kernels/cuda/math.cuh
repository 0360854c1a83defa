// The functions of kernels/cpu/parts/math-inl.h for one number. They use the same operations, so
// the bits are equal.
#pragma once

#include <cuda_runtime.h>

namespace troupe::kernels::cuda {

/// Returns c0 + c1 x + c2 x^2 + ...
__device__ inline float polynomial(float, float c0) { return c0; }
template <class... Higher>
__device__ float polynomial(float x, float c0, Higher... higher) {
  return fmaf(polynomial(x, higher...), x, c0);
}

__device__ inline float inverse_root(float x) { return 1.0f / sqrtf(x); }
__device__ inline double inverse_root(double x) { return 1.0 / sqrt(x); }

/// Return the lesser, and the greater, of x and a bound; a NaN in `x` stays.
__device__ inline float at_most(float x, float bound) { return x > bound ? bound : x; }
__device__ inline float at_least(float x, float bound) { return x < bound ? bound : x; }

/// A split of x = n ln 2 + r with |r| at most half of ln 2: n and e^r - 1.
struct Exponent {
  int n;
  float expm1;
};

/// Requires |x| below 2^21; for other numbers the result has no meaning, but NaN gives NaN.
__device__ inline Exponent split_exponent(float x) {
  constexpr float shift = 0x1.8p23f;
  const float shifted = fmaf(x, 1.44269504f, shift);
  const float n = shifted - shift;
  const float r = fmaf(n, -0x1.7f7d1cp-20f, fmaf(n, -0x1.62e4p-1f, x));
  const float q = polynomial(r, 0x1.fffffcp-2f, 0x1.55548cp-3f, 0x1.555858p-5f, 0x1.123ddep-7f,
                             0x1.6ac722p-10f);
  return {static_cast<int>(__float_as_uint(shifted) - __float_as_uint(shift)), fmaf(r * r, q, r)};
}

/// Returns 2^n for n in [-126, 127].
__device__ inline float power_of_two(int n) {
  return __uint_as_float((static_cast<unsigned>(n) + 127u) << 23);
}

__device__ inline float exp_of(float x) {
  const auto [n, expm1] = split_exponent(at_most(at_least(x, -105.0f), 89.0f));
  const int half = n >> 1;
  return (expm1 + 1.0f) * power_of_two(half) * power_of_two(n - half);
}

/// Returns e^x for x <= 0, but 0 for x < -86. Returns NaN for NaN: the product with 2^n keeps it,
/// whereas adding n to the exponent of a GPU's NaN would give a finite number.
__device__ inline float exp_nonpositive(float x) {
  const auto [n, expm1] = split_exponent(x);
  const float scale = power_of_two(n);
  // For x < -86 this may be any number, which is then not used.
  const float y = fmaf(expm1, scale, scale);
  return x < -86.0f ? 0.0f : y;
}

__device__ inline float tanh_of(float x) {
  const float y = at_most(fabsf(x), 10.0f);
  const auto [n, expm1] = split_exponent(y + y);
  const float scale = power_of_two(n);
  const float e = fmaf(scale, expm1, scale - 1.0f);
  return copysignf(e / (e + 2.0f), x);
}

__device__ inline float erf_of(float x) {
  const float y = at_most(fabsf(x), 3.95f);
  const float s = polynomial(y * y, 0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2ce6p-4f,
                             -0x1.b7f71ap-6f, 0x1.53f224p-8f, -0x1.a3515ep-11f, 0x1.4771fep-14f);
  const float near = fmaf(y, s, y);
  const float l = polynomial(y, 0x1.661d6cp-12f, 0x1.2088eap+0f, 0x1.46baf0p-1f, 0x1.a6531ap-4f,
                             -0x1.65cb1cp-6f, 0x1.825a3ap-9f, -0x1.86dc70p-13f);
  const auto [n, expm1] = split_exponent(-l);
  const float far = 1.0f - power_of_two(n) * (expm1 + 1.0f);
  return copysignf(y > 1.0f ? far : near, x);
}

__device__ inline float log_of(float x) {
  const bool denormal = x < 0x1p-126f;
  const float normal = denormal ? x * 0x1p23f : x;
  constexpr int root_half = 0x3f3504f3;
  const int above = __float_as_int(normal) - root_half;
  const int mantissa = (above & 0x007fffff) + root_half;
  const float f = __int_as_float(mantissa) - 1.0f;
  const float n = static_cast<float>(above >> 23) - (denormal ? 23.0f : 0.0f);
  const float p =
      polynomial(f, 0x1.555548p-2f, -0x1.000070p-2f, 0x1.99a542p-3f, -0x1.552f04p-3f,
                 0x1.230328p-3f, -0x1.01028ep-3f, 0x1.f01358p-4f, -0x1.bf42dcp-4f, 0x1.b42eb8p-5f);
  const float square = f * f;
  const float tail = fmaf(square, fmaf(f, p, -0.5f), n * 0x1.7f7d1cp-20f);
  const float finite = fmaf(n, 0x1.62e4p-1f, f + tail);
  const float infinity = __int_as_float(0x7f800000);
  if (x > 0.0f) return x < infinity ? finite : x;
  if (x != x) return x;
  return x == 0.0f ? -infinity : __int_as_float(0x7fc00000);
}

}  // namespace troupe::kernels::cuda
