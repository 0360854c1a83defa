#include "kernels/element_loss.h"

#include "kernels/cpu/parts/pieces.h"
#include "kernels/cpu/parts/targets.h"
#include "kernels/device_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/element_loss.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/math-inl.h"
#include "kernels/cpu/parts/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

using V = FloatVector;

HWY_INLINE V constant(float value) { return hn::Set(Floats(), value); }

void binary_loss_piece(const float* z, const float* targets, float* losses, float* dz,
                       std::int64_t count, float scale) {
  const V one = constant(1.0f), factor = constant(scale);
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    const V x = at.load(z + i), t = at.load(targets + i);
    const auto counts = hn::Eq(t, t);
    const V e = exp(Floats(), hn::Neg(hn::Abs(x)));
    // log(1 + e): the rounding error of 1 + e cancels in log(w) / (w - 1).
    const V w = hn::Add(one, e);
    const V quotient = hn::Div(hn::Mul(log(Floats(), w), e), hn::Sub(w, one));
    const V log1p = hn::IfThenElse(hn::Eq(w, one), e, quotient);
    const V positive = at_least(x, constant(0.0f));
    const V loss = hn::Add(hn::Sub(positive, hn::Mul(x, t)), log1p);
    at.store(hn::IfThenElseZero(counts, loss), losses + i);
    if (!dz) return;
    const V share = hn::IfThenElse(hn::Ge(x, constant(0.0f)), one, e);
    const V slope = hn::Sub(hn::Div(share, w), t);
    at.store(hn::IfThenElseZero(counts, hn::Mul(slope, factor)), dz + i);
  });
}

void squared_loss_piece(const float* z, const float* targets, float* losses, float* dz,
                        std::int64_t count, float scale) {
  const V factor = constant(scale);
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    const V t = at.load(targets + i);
    const auto counts = hn::Eq(t, t);
    const V apart = hn::Sub(at.load(z + i), t);
    at.store(hn::IfThenElseZero(counts, hn::Mul(apart, apart)), losses + i);
    if (!dz) return;
    const V slope = hn::Add(apart, apart);
    at.store(hn::IfThenElseZero(counts, hn::Mul(slope, factor)), dz + i);
  });
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels {

using namespace cpu;

HWY_EXPORT(binary_loss_piece);
HWY_EXPORT(squared_loss_piece);

void element_loss(Stream& stream, ElementLoss loss, const float* z, const float* targets,
                  float* losses, float* dz, std::int64_t count, float scale) {
  if (const auto* there = kernels_of(stream))
    return there->layers.element_loss(stream, loss, z, targets, losses, dz, count, scale);
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    float* const gradient = dz ? dz + first : nullptr;
    switch (loss) {
      case ElementLoss::binary:
        return HWY_DYNAMIC_DISPATCH(binary_loss_piece)(z + first, targets + first, losses + first,
                                                       gradient, size, scale);
      case ElementLoss::squared:
        return HWY_DYNAMIC_DISPATCH(squared_loss_piece)(z + first, targets + first, losses + first,
                                                        gradient, size, scale);
    }
  });
}

}  // namespace troupe::kernels

#endif
