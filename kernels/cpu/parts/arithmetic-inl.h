// Included once per Highway target: the arithmetic of one step of a product.
#if defined(TROUPE_KERNELS_CPU_ARITHMETIC_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_CPU_ARITHMETIC_INL_H
#undef TROUPE_KERNELS_CPU_ARITHMETIC_INL_H
#else
#define TROUPE_KERNELS_CPU_ARITHMETIC_INL_H
#endif

#include "core/memory/dtype.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/fused-inl.h"
#include "kernels/cpu/parts/panels.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::ScalableTag<std::uint32_t>;
using FloatVector = hn::Vec<Floats>;
using WordVector = hn::Vec<Words>;
constexpr std::int64_t lanes = hn::MaxLanes(Floats());

struct Fp32 {
  using Number = float;
  static HWY_INLINE FloatVector load(const float* from) { return hn::LoadU(Floats(), from); }
  static HWY_INLINE FloatVector broadcast(float number) { return hn::Set(Floats(), number); }
  static HWY_INLINE void add_product(FloatVector a, FloatVector b, FloatVector& sum) {
    sum = fused(a, b, sum);
  }
};

struct Bf16 {
  using Number = BFloat16;
  static HWY_INLINE WordVector load(const Bf16Pair* from) {
    return hn::LoadU(Words(), reinterpret_cast<const std::uint32_t*>(from));
  }
  static HWY_INLINE WordVector broadcast(Bf16Pair pair) {
    return hn::Set(Words(), static_cast<std::uint32_t>(pair));
  }
};

/// A bf16 number is the upper half of a float. The product of two is exact in fp32.
struct Bf16ByFloats : Bf16 {
  static HWY_INLINE FloatVector first(WordVector pair) {
    return hn::BitCast(Floats(), hn::ShiftLeft<16>(pair));
  }
  static HWY_INLINE FloatVector second(WordVector pair) {
    return hn::BitCast(Floats(), hn::And(pair, hn::Set(Words(), 0xffff0000u)));
  }
  static HWY_INLINE void add_product(WordVector a, WordVector b, FloatVector& sum) {
    sum = fused(second(a), second(b), sum);
    sum = fused(first(a), first(b), sum);
  }
};

#if HWY_TARGET == HWY_AVX3
/// The instruction vdpbf16ps, which Highway lacks. Its bits are those of Bf16ByFloats, except that
/// it treats denormal numbers as zero.
struct Bf16ByPairs : Bf16 {
  static HWY_INLINE void add_product(WordVector a, WordVector b, FloatVector& sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  }
};
#else
using Bf16ByPairs = Bf16ByFloats;
#endif

}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
