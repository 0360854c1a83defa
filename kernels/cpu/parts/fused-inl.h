// Included once per Highway target.
#if defined(TROUPE_KERNELS_CPU_FUSED_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_CPU_FUSED_INL_H
#undef TROUPE_KERNELS_CPU_FUSED_INL_H
#else
#define TROUPE_KERNELS_CPU_FUSED_INL_H
#endif

#include <cmath>

#include "hwy/highway.h"
#include "kernels/cpu/parts/targets.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {

/// Returns a * b + c with one rounding. Highway's MulAdd rounds twice on processors without FMA.
template <class V>
HWY_INLINE V fused(V a, V b, V c) {
#if HWY_TARGET == HWY_SCALAR
  return V(std::fma(a.raw, b.raw, c.raw));
#elif HWY_TARGET == HWY_EMU128
  for (std::size_t i = 0; i < sizeof(V) / sizeof(c.raw[0]); ++i)
    c.raw[i] = std::fma(a.raw[i], b.raw[i], c.raw[i]);
  return c;
#elif (HWY_TARGET & (TROUPE_X86_TARGETS | TROUPE_ARM_TARGETS)) != 0
  return hwy::HWY_NAMESPACE::MulAdd(a, b, c);
#else
#error "This Highway compiles for a processor that kernels/cpu/parts/targets.h does not name."
#endif
}

}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
