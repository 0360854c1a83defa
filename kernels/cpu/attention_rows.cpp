#include "kernels/cpu/attention_rows.h"

#include "kernels/cpu/parts/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_rows.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/math-inl.h"
#include "kernels/cpu/parts/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

using V = FloatVector;
using Single = hn::CappedTag<float, 1>;

HWY_INLINE V constant(float value) { return hn::Set(Floats(), value); }

HWY_INLINE void multiply_row(float factor, float* x, std::int64_t count) {
  const V factors = constant(factor);
  each_vector(count, [=](auto at, std::int64_t i)
                         HWY_ATTR { at.store(hn::Mul(at.load(x + i), factors), x + i); });
}

HWY_INLINE float greatest(const float* x, std::int64_t count) {
  Lanes<Floats, 1> lanes(-std::numeric_limits<float>::infinity());
  lanes.walk(count, [=](auto at, std::int64_t i, V(&most)[1]) HWY_ATTR {
    most[0] = hn::Max(most[0], at.or_else(at.load(x + i), most[0]));
  });
  return lanes.fold(0, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
}

/// x = exp(scale x - top). Returns the sum.
HWY_INLINE float exponentials(float* x, float scale, float top, std::int64_t count) {
  const V scales = constant(scale), minus_top = constant(-top);
  Lanes<Floats, 1> lanes(0);
  lanes.walk(count, [=](auto at, std::int64_t i, V(&sum)[1]) HWY_ATTR {
    const V term = exp_nonpositive(Floats(), fused(at.load(x + i), scales, minus_top));
    sum[0] = hn::Add(sum[0], at.or_zero(term));
    at.store(term, x + i);
  });
  return lanes.sum();
}

/// x = cap tanh(scale x / cap).
HWY_INLINE void cap_scores(float* x, const ScoreForm& form, std::int64_t count) {
  const V share = constant(form.scale / form.cap), cap = constant(form.cap);
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    at.store(hn::Mul(cap, tanh(Floats(), hn::Mul(at.load(x + i), share))), x + i);
  });
}

/// x = scale x + biases.
HWY_INLINE void add_biases(float* x, float scale, const float* biases, std::int64_t count) {
  const V scales = constant(scale);
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    at.store(fused(at.load(x + i), scales, at.load(biases + i)), x + i);
  });
}

void soften_block(const ScoreBlock& block, const ScoreForm& form, RunningSoftmax* running,
                  const OutputRows& out) {
  const float scale = form.cap > 0 || form.biases ? 1.0f : form.scale;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    float* scores = block.scores + r * block.stride;
    const std::int64_t passed = block.passed(r), seen = block.seen(r) - passed;
    std::fill(scores, scores + passed, 0.0f);
    std::fill(scores + passed + std::max<std::int64_t>(seen, 0), scores + block.columns, 0.0f);
    if (seen <= 0) continue;
    scores += passed;
    if (form.cap > 0) cap_scores(scores, form, seen);
    if (form.biases) add_biases(scores, form.scale, form.biases - r + passed, seen);
    auto& [top, sum] = running[r];
    const float higher = std::max(top, scale * greatest(scores, seen));
    const float kept = hn::GetLane(exp_nonpositive(Single(), hn::Set(Single(), top - higher)));
    if (sum > 0 && top != higher) multiply_row(kept, out.data + r * out.stride, out.columns);
    sum = sum * kept + exponentials(scores, scale, higher, seen);
    top = higher;
  }
}

void finish_rows(const RunningSoftmax* running, std::int64_t rows, const OutputRows& out,
                 float* logsumexp) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto& [top, sum] = running[r];
    if (sum == 0) {  // The row saw no key.
      std::fill_n(out.data + r * out.stride, out.columns, 0.0f);
      logsumexp[r] = -std::numeric_limits<float>::infinity();
      continue;
    }
    multiply_row(1 / sum, out.data + r * out.stride, out.columns);
    logsumexp[r] = top + hn::GetLane(log(Single(), hn::Set(Single(), sum)));
  }
}

/// ds = dp (1 - (s / cap)^2) for capped scores s.
HWY_INLINE void cap_gradient(const float* s, float cap, float* dp, std::int64_t count) {
  const V share = constant(1 / cap), one = constant(1.0f);
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    const V t = hn::Mul(at.load(s + i), share);
    at.store(hn::Mul(at.load(dp + i), fused(hn::Neg(t), t, one)), dp + i);
  });
}

void soften_gradient_block(const ScoreBlock& block, const SoftmaxGradient& rows, float* dp) {
  const bool is_capped = rows.form.cap > 0;
  const V scale = constant(rows.form.scale);
  const V scale_of_score = is_capped || rows.form.biases ? constant(1.0f) : scale;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    float* p = block.scores + r * block.stride;
    float* ds = dp + r * block.stride;
    const V minus_logsumexp = constant(-rows.logsumexp[r]), dot = constant(rows.dot[r]);
    const std::int64_t passed = block.passed(r), end = std::max(block.seen(r), passed);
    std::fill(p, p + passed, 0.0f);
    std::fill(ds, ds + passed, 0.0f);
    std::fill(p + end, p + block.columns, 0.0f);
    std::fill(ds + end, ds + block.columns, 0.0f);
    p += passed;
    ds += passed;
    if (rows.form.biases)
      add_biases(p, rows.form.scale, rows.form.biases - r + passed, end - passed);
    if (is_capped) {
      cap_scores(p, rows.form, end - passed);
      each_vector(end - passed, [=](auto at, std::int64_t i)
                                    HWY_ATTR { at.store(hn::Sub(at.load(ds + i), dot), ds + i); });
      cap_gradient(p, rows.form.cap, ds, end - passed);
    }
    const V taken = is_capped ? constant(0.0f) : dot;
    each_vector(end - passed, [=](auto at, std::int64_t i) HWY_ATTR {
      const V weight =
          exp_nonpositive(Floats(), fused(at.load(p + i), scale_of_score, minus_logsumexp));
      at.store(weight, p + i);
      at.store(hn::Mul(hn::Mul(weight, scale), hn::Sub(at.load(ds + i), taken)), ds + i);
    });
  }
}

void dots_of_rows(const InputRows& a, const InputRows& b, std::int64_t rows, std::int64_t columns,
                  float* dot) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float *x = a.data + r * a.stride, *y = b.data + r * b.stride;
    Lanes<Floats, 1> lanes(0);
    lanes.walk(columns, [=](auto at, std::int64_t i, V(&sum)[1])
                            HWY_ATTR { sum[0] = fused(at.load(x + i), at.load(y + i), sum[0]); });
    dot[r] = lanes.sum();
  }
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::kernels::cpu {

HWY_EXPORT(soften_block);
HWY_EXPORT(finish_rows);
HWY_EXPORT(soften_gradient_block);
HWY_EXPORT(dots_of_rows);

void soften_scores(const ScoreBlock& block, const ScoreForm& form, RunningSoftmax* running,
                   const OutputRows& out) {
  HWY_DYNAMIC_DISPATCH(soften_block)(block, form, running, out);
}
void finish_softmax(const RunningSoftmax* running, std::int64_t rows, const OutputRows& out,
                    float* logsumexp) {
  HWY_DYNAMIC_DISPATCH(finish_rows)(running, rows, out, logsumexp);
}
void soften_gradient(const ScoreBlock& block, const SoftmaxGradient& rows, float* dp) {
  HWY_DYNAMIC_DISPATCH(soften_gradient_block)(block, rows, dp);
}
void dot_rows(const InputRows& a, const InputRows& b, std::int64_t rows, std::int64_t columns,
              float* dot) {
  HWY_DYNAMIC_DISPATCH(dots_of_rows)(a, b, rows, columns, dot);
}

}  // namespace troupe::kernels::cpu
#endif
