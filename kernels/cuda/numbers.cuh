// Conversions between 32-bit or 16-bit numbers in memory and the floats that kernels compute with.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/float16.h"

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

/// The most bytes that a thread reads or writes by one instruction.
constexpr std::size_t most_access = 16;

/// Neighbouring numbers, which a thread reads or writes by accesses of up to 16 bytes.
template <class T, int n>
struct alignas(std::min(sizeof(T) * n, most_access)) Pack {
  T numbers[n];

  __device__ T& operator[](int i) { return numbers[i]; }
  __device__ const T& operator[](int i) const { return numbers[i]; }
};

/// The numbers that a thread accesses at once.
template <class Number>
constexpr int in_access = most_access / sizeof(Number);

/// Reads the numbers from i on. Requires that &from[i] is aligned to a pack.
template <int n, class T>
__device__ Pack<T, n> read_pack(const T* from, std::int64_t i) {
  return *reinterpret_cast<const Pack<T, n>*>(from + i);
}
/// Writes the numbers from i on. Requires that &to[i] is aligned to a pack.
template <class T, int n>
__device__ void write_pack(T* to, std::int64_t i, const Pack<T, n>& pack) {
  *reinterpret_cast<Pack<T, n>*>(to + i) = pack;
}

/// Returns whether packs at all these addresses are aligned.
template <class... T>
bool are_aligned(const T*... addresses) {
  return ((reinterpret_cast<std::uintptr_t>(addresses) % most_access == 0) && ...);
}

#ifdef __CUDA_ARCH__
/// Rounds two numbers by one instruction; the first one becomes the lower half.
template <class Number>
__device__ unsigned round_pair(float first, float second) {
  unsigned pair;
  if constexpr (std::is_same_v<Number, Float16>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}
#endif

/// Rounds computed numbers as narrow() does. A NaN must be a result of arithmetic, since the GPU's
/// instruction changes other NaNs.
template <class Number, int n>
__device__ Pack<Number, n> narrow_computed(const Pack<float, n>& x) {
  Pack<Number, n> y;
#ifdef __CUDA_ARCH__
  constexpr bool has_instruction = !std::is_same_v<Number, float>;
#else
  constexpr bool has_instruction = false;
#endif
  if constexpr (has_instruction && n % 2 == 0) {
    for (int i = 0; i < n; i += 2) {
      const unsigned pair = round_pair<Number>(x[i], x[i + 1]);
      y[i].bits = static_cast<std::uint16_t>(pair);
      y[i + 1].bits = static_cast<std::uint16_t>(pair >> 16);
    }
  } else {
    for (int i = 0; i < n; ++i) y[i] = narrow<Number>(x[i]);
  }
  return y;
}

}  // namespace troupe::kernels::cuda
