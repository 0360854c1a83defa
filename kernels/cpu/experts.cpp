#include "kernels/experts.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/parts/pieces.h"
#include "kernels/cpu/parts/targets.h"
#include "kernels/device_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/experts.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/math-inl.h"
#include "kernels/cpu/parts/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

using V = FloatVector;
using Single = hn::CappedTag<float, 1>;

HWY_INLINE float log_of(float x) { return hn::GetLane(log(Single(), hn::Set(Single(), x))); }

/// Writes the softmax of a token's logits. One chain adds up the terms.
void softmax_of_router(const float* logits, float* probabilities, float* logsumexp,
                       std::int64_t experts) {
  float most = logits[0];
  for (std::int64_t e = 1; e < experts; ++e) most = std::max(most, logits[e]);
  const V shift = hn::Set(Floats(), most);
  each_vector(experts, [=](auto at, std::int64_t e) HWY_ATTR {
    at.store(exp_nonpositive(Floats(), hn::Sub(at.load(logits + e), shift)), probabilities + e);
  });
  float sum = 0;
  for (std::int64_t e = 0; e < experts; ++e) sum += probabilities[e];
  for (std::int64_t e = 0; e < experts; ++e) probabilities[e] /= sum;
  *logsumexp = most + log_of(sum);
}

float dot_of_rows(const float* a, const float* b, std::int64_t count) {
  Lanes<Floats, 1> lanes(0);
  lanes.walk(count, [=](auto at, std::int64_t i, V(&sum)[1]) HWY_ATTR {
    sum[0] = hn::Add(sum[0], hn::Mul(at.load(a + i), at.load(b + i)));
  });
  return lanes.sum();
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels {

using namespace cpu;

HWY_EXPORT(softmax_of_router);
HWY_EXPORT(dot_of_rows);

namespace {

/// Chooses the experts of a token. Any numbers, even NaN, give different experts.
void choose(const RouterShape& shape, const float* probabilities, std::int32_t* chosen,
            float* weights) {
  for (std::int64_t j = 0; j < shape.top; ++j) {
    std::int32_t best = -1;
    for (std::int32_t e = 0; e < shape.experts; ++e) {
      if (std::find(chosen, chosen + j, e) != chosen + j) continue;
      if (best < 0 || probabilities[e] > probabilities[best]) best = e;
    }
    chosen[j] = best;
    weights[j] = probabilities[best];
  }
  if (!shape.renormalise) return;
  float sum = 0;
  for (std::int64_t j = 0; j < shape.top; ++j) sum += weights[j];
  for (std::int64_t j = 0; j < shape.top; ++j) weights[j] /= sum;
}

/// Sorts rows by (expert, token), by counting.
void sort_rows(const RouterShape& shape, const Routes& routes) {
  std::int32_t* const bounds = routes.bounds;
  std::fill_n(bounds, shape.experts + 1, 0);
  for (std::int64_t i = 0; i < shape.rows(); ++i) ++bounds[routes.chosen[i] + 1];
  for (std::int64_t e = 0; e < shape.experts; ++e) bounds[e + 1] += bounds[e];
  // Each expert's bound moves to its end, which is the next expert's bound.
  for (std::int64_t i = 0; i < shape.rows(); ++i) {
    const std::int32_t place = bounds[routes.chosen[i]]++;
    routes.places[i] = place;
    routes.tokens[place] = static_cast<std::int32_t>(i / shape.top);
  }
  std::copy_backward(bounds, bounds + shape.experts, bounds + shape.experts + 1);
  bounds[0] = 0;
}

void route_back(const RouterShape& shape, const Routes& routes, std::int64_t token,
                const float* dweights, const RouterLosses& losses, float* dlogits) {
  const float* const probabilities = routes.probabilities + token * shape.experts;
  const std::int32_t* const chosen = routes.chosen + token * shape.top;
  const float* const weights = routes.weights + token * shape.top;
  const auto tokens = static_cast<float>(shape.tokens);
  // The gradients of the probabilities.
  const float balance = losses.balance * static_cast<float>(shape.experts) / tokens;
  for (std::int64_t e = 0; e < shape.experts; ++e)
    dlogits[e] = balance * (static_cast<float>(routes.bounds[e + 1] - routes.bounds[e]) / tokens);
  float sum = 0, inner = 0;
  for (std::int64_t j = 0; j < shape.top; ++j) {
    sum += probabilities[chosen[j]];
    inner += weights[j] * dweights[j];
  }
  for (std::int64_t j = 0; j < shape.top; ++j)
    dlogits[chosen[j]] += shape.renormalise ? (dweights[j] - inner) / sum : dweights[j];
  // Through the softmax.
  float mean = 0;
  for (std::int64_t e = 0; e < shape.experts; ++e) mean += probabilities[e] * dlogits[e];
  const float slope = losses.z * 2 / tokens * routes.logsumexp[token];
  for (std::int64_t e = 0; e < shape.experts; ++e)
    dlogits[e] = probabilities[e] * ((dlogits[e] - mean) + slope);
}

}  // namespace

void route(Stream& stream, const RouterShape& shape, const float* logits, const Routes& routes) {
  if (const auto* there = kernels_of(stream)) return there->route(stream, shape, logits, routes);
  for_rows(stream, shape.tokens, shape.experts * shape.top, [=](std::int64_t t) {
    float* const probabilities = routes.probabilities + t * shape.experts;
    HWY_DYNAMIC_DISPATCH(softmax_of_router)
    (logits + t * shape.experts, probabilities, routes.logsumexp + t, shape.experts);
    choose(shape, probabilities, routes.chosen + t * shape.top, routes.weights + t * shape.top);
  });
  stream.for_each(1, [=](std::int64_t) { sort_rows(shape, routes); });
}

void route_backward(Stream& stream, const RouterShape& shape, const Routes& routes,
                    const float* dweights, const RouterLosses& losses, float* dlogits) {
  if (const auto* there = kernels_of(stream))
    return there->route_backward(stream, shape, routes, dweights, losses, dlogits);
  for_rows(stream, shape.tokens, shape.experts, [=](std::int64_t t) {
    route_back(shape, routes, t, dweights + t * shape.top, losses, dlogits + t * shape.experts);
  });
}

void sum_experts(Stream& stream, const RouterShape& shape, const std::int32_t* places,
                 const float* weights, const float* rows, float* y, std::int64_t columns) {
  if (const auto* there = kernels_of(stream))
    return there->sum_experts(stream, shape, places, weights, rows, y, columns);
  for_rows(stream, shape.tokens, columns * shape.top, [=](std::int64_t t) {
    float* const to = y + t * columns;
    std::fill_n(to, columns, 0.0f);
    for (std::int64_t i = t * shape.top; i < (t + 1) * shape.top; ++i) {
      const float* const from = rows + places[i] * columns;
      const float weight = weights ? weights[i] : 1.0f;
      for (std::int64_t c = 0; c < columns; ++c) to[c] += weight * from[c];
    }
  });
}

void sum_experts_backward(Stream& stream, const RouterShape& shape, const std::int32_t* places,
                          const float* weights, const float* rows, const float* dy, float* drows,
                          float* dweights, std::int64_t columns) {
  if (const auto* there = kernels_of(stream))
    return there->sum_experts_backward(stream, shape, places, weights, rows, dy, drows, dweights,
                                       columns);
  for_rows(stream, shape.rows(), columns, [=](std::int64_t i) {
    const float* const from = dy + i / shape.top * columns;
    float* const to = drows + places[i] * columns;
    const float weight = weights[i];
    for (std::int64_t c = 0; c < columns; ++c) to[c] = weight * from[c];
    dweights[i] = HWY_DYNAMIC_DISPATCH(dot_of_rows)(from, rows + places[i] * columns, columns);
  });
}

}  // namespace troupe::kernels

#endif
