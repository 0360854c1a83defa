#include "kernels/cpu/parts/fma_chain.h"

#include "kernels/cpu/parts/amx.h"
#include "kernels/cpu/parts/features.h"
#include "kernels/cpu/parts/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/parts/fma_chain.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/arithmetic-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

template <class Arithmetic>
FmaChain chain(std::int64_t steps) {
  // More than an addition's latency times the additions started per cycle, and few enough for the
  // registers.
  constexpr int sums = 12;
  using Number = typename Arithmetic::Number;
  const Unit<Number> units[lanes] = {};
  const auto a = Arithmetic::load(units), b = a;
  FloatVector sum[sums];
#pragma GCC unroll 16
  for (int i = 0; i < sums; ++i) sum[i] = hn::Set(Floats(), static_cast<float>(i));
  for (std::int64_t step = 0; step < steps; ++step)
#pragma GCC unroll 16
    for (int i = 0; i < sums; ++i) Arithmetic::add_product(a, b, sum[i]);
#pragma GCC unroll 16
  for (int i = 1; i < sums; ++i) sum[0] = hn::Add(sum[0], sum[i]);
  return {steps * sums * lanes * UnitOf<Number>::numbers * 2, hn::GetLane(sum[0])};
}

FmaChain chain_f32(std::int64_t steps) { return chain<Fp32>(steps); }
FmaChain chain_bf16(std::int64_t steps) {
  return has_bf16_pairs() ? chain<Bf16ByPairs>(steps) : chain<Bf16ByFloats>(steps);
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::kernels::cpu {

HWY_EXPORT(chain_f32);
HWY_EXPORT(chain_bf16);

FmaChain fma_chain_f32(std::int64_t steps) { return HWY_DYNAMIC_DISPATCH(chain_f32)(steps); }
FmaChain fma_chain_bf16(std::int64_t steps) { return HWY_DYNAMIC_DISPATCH(chain_bf16)(steps); }

FmaChain tile_chain(std::int64_t steps) {
#if defined(__x86_64__)
  if (has_bf16_tiles()) {
    constexpr std::int64_t rows = amx::tile_size, columns = amx::tile_size, pairs = amx::tile_size;
    float sums[rows * columns];
    const amx::Registers registers;
    for (std::int64_t step = 0; step < steps; ++step) {
      amx::add_product<0, 4, 5>();
      amx::add_product<1, 4, 5>();
      amx::add_product<2, 4, 5>();
      amx::add_product<3, 4, 5>();
    }
    amx::store<0>(sums, columns * sizeof(float));
    return {steps * 4 * rows * columns * pairs * 2 * 2, sums[0]};
  }
#endif
  return fma_chain_f32(steps);
}

}  // namespace troupe::kernels::cpu
#endif
