#include "kernels/activations.h"

#include "kernels/cpu/parts/pieces.h"
#include "kernels/cpu/parts/targets.h"
#include "kernels/device_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activations.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/math-inl.h"
#include "kernels/cpu/parts/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

using V = FloatVector;

HWY_INLINE V constant(float value) { return hn::Set(Floats(), value); }

/// Returns 1 / (1 + exp(-x)).
HWY_INLINE V sigmoid(V x) {
  const V one = constant(1.0f);
  return hn::Div(one, hn::Add(one, exp(Floats(), hn::Neg(x))));
}

// gelu(x) = x (1 + tanh u) / 2 = x sigmoid(2 u), with 2 u = x (a + b x^2). The second form keeps
// its precision if tanh u is near -1.
constexpr float a = 1.5957691216f;   // 2 sqrt(2 / pi)
constexpr float b = 0.07135481628f;  // 0.044715 a

void gelu_tanh_forward_piece(const float* x, float* y, std::int64_t count) {
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    const V input = at.load(x + i);
    const V minus_2u = hn::Mul(input, polynomial(Floats(), hn::Mul(input, input), -a, -b));
    at.store(hn::Div(input, hn::Add(constant(1.0f), exp(Floats(), minus_2u))), y + i);
  });
}

void gelu_tanh_backward_piece(const float* x, const float* dy, float* dx, std::int64_t count) {
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    // For |x| > 10 the derivative is 0 or 1, and x^3 might overflow.
    const V input = at_least(at_most(at.load(x + i), constant(10.0f)), constant(-10.0f));
    const V square = hn::Mul(input, input);
    const V s = sigmoid(hn::Mul(input, polynomial(Floats(), square, a, b)));
    // The derivative is s + x s (1 - s) (2 u)'.
    const V inner = hn::Mul(input, polynomial(Floats(), square, a, 3 * b));
    const V slope = fused(hn::Mul(s, hn::Sub(constant(1.0f), s)), inner, s);
    at.store(hn::Mul(at.load(dy + i), slope), dx + i);
  });
}

/// Returns (1 + erf(x / sqrt 2)) / 2.
HWY_INLINE V normal_distribution(V x) {
  const V half = constant(0.5f);
  return fused(half, erf(Floats(), hn::Mul(x, constant(0.70710678f))), half);
}

void gelu_erf_forward_piece(const float* x, float* y, std::int64_t count) {
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    const V input = at.load(x + i);
    at.store(hn::Mul(input, normal_distribution(input)), y + i);
  });
}

void gelu_erf_backward_piece(const float* x, const float* dy, float* dx, std::int64_t count) {
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    const V input = at.load(x + i);
    const V density = hn::Mul(constant(0.39894228f),
                              exp(Floats(), hn::Mul(hn::Mul(input, input), constant(-0.5f))));
    const V slope = fused(input, density, normal_distribution(input));
    at.store(hn::Mul(at.load(dy + i), slope), dx + i);
  });
}

void relu_forward_piece(const float* x, float* y, std::int64_t count) {
  each_vector(count, [=](auto at, std::int64_t i)
                         HWY_ATTR { at.store(at_least(at.load(x + i), constant(0.0f)), y + i); });
}

void relu_backward_piece(const float* y, const float* dy, float* dx, std::int64_t count) {
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    const auto open = hn::Gt(at.load(y + i), constant(0.0f));
    at.store(hn::IfThenElseZero(open, at.load(dy + i)), dx + i);
  });
}

void swiglu_forward_piece(const float* gate, const float* up, float* y, std::int64_t count) {
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    const V g = at.load(gate + i);
    const V silu = hn::Div(g, hn::Add(constant(1.0f), exp(Floats(), hn::Neg(g))));
    at.store(hn::Mul(silu, at.load(up + i)), y + i);
  });
}

void swiglu_backward_piece(const float* gate, const float* up, const float* dy, float* dgate,
                           float* dup, std::int64_t count) {
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    const V g = at.load(gate + i);
    const V u = at.load(up + i);
    const V gradient = at.load(dy + i);
    const V one = constant(1.0f);
    const V s = sigmoid(g);
    const V slope = hn::Mul(s, fused(g, hn::Sub(one, s), one));
    at.store(hn::Mul(hn::Mul(gradient, u), slope), dgate + i);
    at.store(hn::Mul(gradient, hn::Mul(g, s)), dup + i);
  });
}

void softcap_forward_piece(float cap, const float* x, float* y, std::int64_t count) {
  const V share = constant(1 / cap), bound = constant(cap);
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    at.store(hn::Mul(bound, tanh(Floats(), hn::Mul(at.load(x + i), share))), y + i);
  });
}

void softcap_backward_piece(float cap, const float* y, const float* dy, float* dx,
                            std::int64_t count) {
  const V share = constant(1 / cap), one = constant(1.0f);
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    const V t = hn::Mul(at.load(y + i), share);
    at.store(hn::Mul(at.load(dy + i), fused(hn::Neg(t), t, one)), dx + i);
  });
}

void add_piece(const float* first, const float* second, float* y, std::int64_t count) {
  each_vector(count, [=](auto at, std::int64_t i) HWY_ATTR {
    at.store(hn::Add(at.load(first + i), at.load(second + i)), y + i);
  });
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels {

using namespace cpu;

HWY_EXPORT(gelu_tanh_forward_piece);
HWY_EXPORT(gelu_tanh_backward_piece);
HWY_EXPORT(gelu_erf_forward_piece);
HWY_EXPORT(gelu_erf_backward_piece);
HWY_EXPORT(relu_forward_piece);
HWY_EXPORT(relu_backward_piece);
HWY_EXPORT(swiglu_forward_piece);
HWY_EXPORT(swiglu_backward_piece);
HWY_EXPORT(softcap_forward_piece);
HWY_EXPORT(softcap_backward_piece);
HWY_EXPORT(add_piece);

void gelu_forward(Stream& stream, Gelu form, const float* x, float* y, std::int64_t count) {
  if (const auto* there = kernels_of(stream)) return there->gelu_forward(stream, form, x, y, count);
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    switch (form) {
      case Gelu::erf:
        return HWY_DYNAMIC_DISPATCH(gelu_erf_forward_piece)(x + first, y + first, size);
      case Gelu::tanh:
        return HWY_DYNAMIC_DISPATCH(gelu_tanh_forward_piece)(x + first, y + first, size);
    }
  });
}

void gelu_backward(Stream& stream, Gelu form, const float* x, const float* dy, float* dx,
                   std::int64_t count) {
  if (const auto* there = kernels_of(stream))
    return there->gelu_backward(stream, form, x, dy, dx, count);
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    switch (form) {
      case Gelu::erf:
        return HWY_DYNAMIC_DISPATCH(gelu_erf_backward_piece)(x + first, dy + first, dx + first,
                                                             size);
      case Gelu::tanh:
        return HWY_DYNAMIC_DISPATCH(gelu_tanh_backward_piece)(x + first, dy + first, dx + first,
                                                              size);
    }
  });
}

void relu_forward(Stream& stream, const float* x, float* y, std::int64_t count) {
  if (const auto* there = kernels_of(stream))
    return there->layers.relu_forward(stream, x, y, count);
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(relu_forward_piece)(x + first, y + first, size);
  });
}

void relu_backward(Stream& stream, const float* y, const float* dy, float* dx, std::int64_t count) {
  if (const auto* there = kernels_of(stream))
    return there->layers.relu_backward(stream, y, dy, dx, count);
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(relu_backward_piece)(y + first, dy + first, dx + first, size);
  });
}

void swiglu_forward(Stream& stream, const float* gate, const float* up, float* y,
                    std::int64_t count) {
  if (const auto* there = kernels_of(stream))
    return there->layers.swiglu_forward(stream, gate, up, y, count);
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(swiglu_forward_piece)(gate + first, up + first, y + first, size);
  });
}

void swiglu_backward(Stream& stream, const float* gate, const float* up, const float* dy,
                     float* dgate, float* dup, std::int64_t count) {
  if (const auto* there = kernels_of(stream))
    return there->layers.swiglu_backward(stream, gate, up, dy, dgate, dup, count);
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(swiglu_backward_piece)
    (gate + first, up + first, dy + first, dgate + first, dup + first, size);
  });
}

void softcap_forward(Stream& stream, float cap, const float* x, float* y, std::int64_t count) {
  if (const auto* there = kernels_of(stream))
    return there->softcap_forward(stream, cap, x, y, count);
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(softcap_forward_piece)(cap, x + first, y + first, size);
  });
}

void softcap_backward(Stream& stream, float cap, const float* y, const float* dy, float* dx,
                      std::int64_t count) {
  if (const auto* there = kernels_of(stream))
    return there->softcap_backward(stream, cap, y, dy, dx, count);
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(softcap_backward_piece)(cap, y + first, dy + first, dx + first, size);
  });
}

void add(Stream& stream, const float* a, const float* b, float* y, std::int64_t count) {
  if (const auto* there = kernels_of(stream)) return there->layers.add(stream, a, b, y, count);
  for_elements(stream, count, [=](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(add_piece)(a + first, b + first, y + first, size);
  });
}

void add_row(Stream& stream, const float* x, const float* row, float* y, std::int64_t rows,
             std::int64_t columns) {
  if (const auto* there = kernels_of(stream))
    return there->add_row(stream, x, row, y, rows, columns);
  for_rows(stream, rows, columns, [=](std::int64_t r) {
    HWY_DYNAMIC_DISPATCH(add_piece)(x + r * columns, row, y + r * columns, columns);
  });
}

}  // namespace troupe::kernels

#endif
