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

HWY_INLINE float sum_of_logits(const float* x, std::int64_t count) {
  Lanes<Floats, 1> lanes(0);
  lanes.walk(count, [=](auto at, std::int64_t i, V(&sum)[1])
                        HWY_ATTR { sum[0] = hn::Add(sum[0], at.or_zero(at.load(x + i))); });
  return lanes.sum();
}

/// Computes one row whose target counts. The terms of a chunk are relative to its greatest number;
/// once the total is known, they are scaled to the softmax.
void softmax_cross_entropy_row(const float* logits, std::int64_t target, float* loss,
                               float* dlogits, std::int64_t classes, float scale,
                               const CrossEntropyForm& form) {
  const float target_logit = logits[target];
  const std::int64_t chunk = std::max(least_chunk, (classes + most_chunks - 1) / most_chunks);
  float shifts[most_chunks];
  float shift = -infinity, sum = 0, all_logits = 0;
  for (std::int64_t first = 0; first < classes; first += chunk) {
    const std::int64_t size = std::min(chunk, classes - first);
    const float most = greatest(logits + first, size);
    if (form.smoothing > 0) all_logits += sum_of_logits(logits + first, size);
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
  const float log_sum = log_of(sum), spread = form.smoothing;
  *loss = log_sum + (shift - target_logit);
  if (spread > 0) {
    const float mean = all_logits / static_cast<float>(classes);
    *loss = (1 - spread) * *loss + spread * (log_sum + (shift - mean));
  }
  float slope = scale;  // The gradient of logsumexp.
  if (form.z > 0) {
    const float logsumexp = log_sum + shift;
    *loss += form.z * (logsumexp * logsumexp);
    slope *= 1 + 2 * form.z * logsumexp;
  }
  if (!dlogits) return;

  const V each = hn::Set(Floats(), spread / static_cast<float>(classes) * scale);
  for (std::int64_t first = 0; first < classes; first += chunk) {
    float* const terms = dlogits + first;
    const V factor = hn::Set(Floats(), exp_of(shifts[first / chunk] - shift) / sum * slope);
    each_vector(std::min(chunk, classes - first), [=](auto at, std::int64_t i) HWY_ATTR {
      at.store(hn::Sub(hn::Mul(at.load(terms + i), factor), each), terms + i);
    });
  }
  dlogits[target] -= (1 - spread) * scale;
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
                           float scale, const CrossEntropyForm& form) {
  if (const auto* there = kernels_of(stream))
    return there->layers.softmax_cross_entropy(stream, logits, targets, losses, dlogits, rows,
                                               classes, scale, form);
  for_rows(stream, rows, classes, [=](std::int64_t r) {
    float* const dlogits_row = dlogits ? dlogits + r * classes : nullptr;
    if (targets[r] == form.ignore) {
      losses[r] = 0;
      if (dlogits_row) std::fill_n(dlogits_row, classes, 0.0f);
      return;
    }
    assert(targets[r] >= 0 && targets[r] < classes);
    HWY_DYNAMIC_DISPATCH(softmax_cross_entropy_row)
    (logits + r * classes, targets[r], losses + r, dlogits_row, classes, scale, form);
  });
}

}  // namespace troupe::kernels

#endif
