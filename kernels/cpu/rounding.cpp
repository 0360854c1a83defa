#include "kernels/rounding.h"

#include "kernels/cpu/parts/pieces.h"
#include "kernels/cpu/parts/targets.h"
#include "kernels/device_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rounding.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

void round_bf16(const float* from, BFloat16* to, std::int64_t count) {
  const hn::Repartition<std::int32_t, Floats> words;
  const hn::Rebind<std::uint16_t, Floats> halves;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(words));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto numbers = hn::LoadU(Floats(), from + i);
    const auto bits = hn::BitCast(hn::Repartition<std::uint32_t, Floats>(), numbers);
    const auto one = hn::Set(hn::Repartition<std::uint32_t, Floats>(), 1);
    const auto upper = hn::ShiftRight<16>(bits);
    const auto rounded = hn::ShiftRight<16>(
        hn::Add(bits, hn::Add(hn::And(upper, one), hn::Sub(hn::ShiftLeft<15>(one), one))));
    const auto quiet = hn::Or(upper, hn::ShiftLeft<6>(one));
    const auto result =
        hn::IfThenElse(hn::RebindMask(hn::Repartition<std::uint32_t, Floats>(), hn::IsNaN(numbers)),
                       quiet, rounded);
    hn::StoreU(hn::DemoteTo(halves, hn::BitCast(words, result)), halves, &to[i].bits);
  }
  for (; i < count; ++i) to[i] = BFloat16::from(from[i]);
}

// On processors with conversion instructions, whole vectors come first and the scalar loop does the
// rest. On other processors the loop does everything.
void round_halves(const float* from, Float16* to, std::int64_t count) {
  std::int64_t i = 0;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  const Floats floats;
  const hn::Rebind<hwy::float16_t, decltype(floats)> halves;
  for (constexpr std::int64_t lanes = hn::MaxLanes(floats); i + lanes <= count; i += lanes)
    hn::StoreU(hn::DemoteTo(halves, hn::LoadU(floats, from + i)), halves,
               reinterpret_cast<hwy::float16_t*>(to + i));
#endif
  for (; i < count; ++i) to[i] = Float16::from(from[i]);
}

void widen_halves(const Float16* from, float* to, std::int64_t count) {
  std::int64_t i = 0;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  const Floats floats;
  const hn::Rebind<hwy::float16_t, decltype(floats)> halves;
  for (constexpr std::int64_t lanes = hn::MaxLanes(floats); i + lanes <= count; i += lanes)
    hn::StoreU(
        hn::PromoteTo(floats, hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(from + i))),
        floats, to + i);
#endif
  for (; i < count; ++i) to[i] = from[i].to_float();
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::kernels {

using namespace cpu;

HWY_EXPORT(round_bf16);
HWY_EXPORT(round_halves);
HWY_EXPORT(widen_halves);

void round_all(Stream& stream, const float* x, BFloat16* y, std::int64_t count) {
  if (const auto* there = kernels_of(stream)) return there->round_to_bf16(stream, x, y, count);
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(round_bf16)(x + first, y + first, size);
  });
}
void round_all(Stream& stream, const float* x, Float16* y, std::int64_t count) {
  if (const auto* there = kernels_of(stream)) return there->round_to_f16(stream, x, y, count);
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(round_halves)(x + first, y + first, size);
  });
}

void widen_all(Stream& stream, const BFloat16* x, float* y, std::int64_t count) {
  if (const auto* there = kernels_of(stream)) return there->widen_bf16(stream, x, y, count);
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    for (std::int64_t i = first; i < first + size; ++i) y[i] = x[i].to_float();
  });
}
void widen_all(Stream& stream, const Float16* x, float* y, std::int64_t count) {
  if (const auto* there = kernels_of(stream)) return there->widen_f16(stream, x, y, count);
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(widen_halves)(x + first, y + first, size);
  });
}

}  // namespace troupe::kernels
#endif
