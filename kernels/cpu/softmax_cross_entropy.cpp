#include "kernels/softmax_cross_entropy.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "kernels/cpu/parts/pieces.h"
#include "kernels/cpu/parts/targets.h"
#include "kernels/device_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax_cross_entropy.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/math-inl.h"
#include "kernels/cpu/parts/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

using V = FloatVector;
using Single = hn::CappedTag<float, 1>;

constexpr float infinity = std::numeric_limits<float>::infinity();

HWY_INLINE float exp_of(float x) { return hn::GetLane(exp(Single(), hn::Set(Single(), x))); }
HWY_INLINE float log_of(float x) { return hn::GetLane(log(Single(), hn::Set(Single(), x))); }

/// A row is split into at most `most_chunks` chunks, small enough for the first-level cache.
constexpr std::int64_t most_chunks = 64;
constexpr std::int64_t least_chunk = 4096;

/// Returns the greatest number, or possibly NaN if there is one; all results are NaN then.
HWY_INLINE float greatest(const float* x, std::int64_t count) {
  Lanes<Floats, 1> lanes(-infinity);
  lanes.walk(count, [=](auto at, std::int64_t i, V(&most)[1]) HWY_ATTR {
    most[0] = hn::Max(most[0], at.or_else(at.load(x + i), most[0]));
  });
  return lanes.fold(0, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
}

/// Returns the sum of exp(x - shift), and writes the terms to `terms` unless that is null.
HWY_INLINE float sum_of_exp(const float* x, float shift, float* terms, std::int64_t count) {
  const V minus_shift = hn::Set(Floats(), -shift);
  Lanes<Floats, 1> lanes(0);
  lanes.walk(count, [=](auto at, std::int64_t i, V(&sum)[1]) HWY_ATTR {
    // Prefetch the next chunk while this one is computed.
    hwy::Prefetch(x + count + i);
    const V term = exp_nonpositive(Floats(), hn::Add(at.load(x + i), minus_shift));
    sum[0] = hn::Add(sum[0], at.or_zero(term));
    if (terms) at.store(term, terms + i);
  });
  return lanes.sum();
}

/// Computes one row. The terms of a chunk are relative to its greatest number; once the total is
/// known, they are scaled to the softmax.
void softmax_cross_entropy_row(const float* logits, std::int64_t target, float* loss,
                               float* dlogits, std::int64_t classes, float scale) {
  const float target_logit = logits[target];
  const std::int64_t chunk = std::max(least_chunk, (classes + most_chunks - 1) / most_chunks);
  float shifts[most_chunks];
  float shift = -infinity, sum = 0;
  for (std::int64_t first = 0; first < classes; first += chunk) {
    const std::int64_t size = std::min(chunk, classes - first);
    const float most = greatest(logits + first, size);
    // If all are -infinity, every term is 0, whatever the finite shift.
    const float chunk_shift = most == -infinity ? std::numeric_limits<float>::lowest() : most;
    const float chunk_sum =
        sum_of_exp(logits + first, chunk_shift, dlogits ? dlogits + first : nullptr, size);
    shifts[first / chunk] = chunk_shift;
    if (chunk_shift > shift) {
      sum *= exp_of(shift - chunk_shift);
      shift = chunk_shift;
    }
    sum += chunk_sum * exp_of(chunk_shift - shift);
  }
  *loss = log_of(sum) + (shift - target_logit);
  if (!dlogits) return;

  for (std::int64_t first = 0; first < classes; first += chunk) {
    float* const terms = dlogits + first;
    const V factor = hn::Set(Floats(), exp_of(shifts[first / chunk] - shift) / sum * scale);
    each_vector(std::min(chunk, classes - first), [=](auto at, std::int64_t i) HWY_ATTR {
      at.store(hn::Mul(at.load(terms + i), factor), terms + i);
    });
  }
  dlogits[target] -= scale;
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels {

using namespace cpu;

HWY_EXPORT(softmax_cross_entropy_row);

void softmax_cross_entropy(Stream& stream, const float* logits, const std::int32_t* targets,
                           float* losses, float* dlogits, std::int64_t rows, std::int64_t classes,
                           float scale) {
  if (const auto* there = kernels_of(stream))
    return there->layers.softmax_cross_entropy(stream, logits, targets, losses, dlogits, rows,
                                               classes, scale);
  for_rows(stream, rows, classes, [=](std::int64_t r) {
    assert(targets[r] >= 0 && targets[r] < classes);
    HWY_DYNAMIC_DISPATCH(softmax_cross_entropy_row)
    (logits + r * classes, targets[r], losses + r, dlogits ? dlogits + r * classes : nullptr,
     classes, scale);
  });
}

}  // namespace troupe::kernels

#endif
