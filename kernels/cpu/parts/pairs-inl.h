// Included once per Highway target: pairs of bf16 numbers, the units of products.
#if defined(TROUPE_KERNELS_CPU_PAIRS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_CPU_PAIRS_INL_H
#undef TROUPE_KERNELS_CPU_PAIRS_INL_H
#else
#define TROUPE_KERNELS_CPU_PAIRS_INL_H
#endif

#include "core/memory/dtype.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/panels.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {

inline Bf16Pair pair(BFloat16 first, BFloat16 second) {
  return static_cast<Bf16Pair>(first.bits | static_cast<std::uint32_t>(second.bits) << 16);
}

/// Combines two rows into one row of pairs.
HWY_INLINE void interleave(const BFloat16* first, const BFloat16* second, std::int64_t count,
                           Bf16Pair* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<std::uint32_t> words;
  const hn::Rebind<std::uint16_t, decltype(words)> halves;
  constexpr std::int64_t lanes = hn::MaxLanes(words);
  const auto load = [&](const BFloat16* from) {
    return hn::PromoteTo(words, hn::LoadU(halves, &from->bits));
  };
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Or(load(first + i), hn::ShiftLeft<16>(load(second + i))), words,
               reinterpret_cast<std::uint32_t*>(to + i));
  for (; i < count; ++i) to[i] = pair(first[i], second[i]);
}

}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
