// Functions of float vectors, built from operations that round once: equal bits on every
// instruction set. They handle every input: 0, infinities, NaN, denormal numbers.

#if defined(TROUPE_KERNELS_CPU_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_CPU_MATH_INL_H
#undef TROUPE_KERNELS_CPU_MATH_INL_H
#else
#define TROUPE_KERNELS_CPU_MATH_INL_H
#endif

#include "hwy/highway.h"
#include "kernels/cpu/parts/fused-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Returns c0 + c1 x + c2 x^2 + ...
template <class D, class V = hn::Vec<D>>
HWY_INLINE V polynomial(D d, V, float c0) {
  return hn::Set(d, c0);
}
template <class D, class... Higher, class V = hn::Vec<D>>
HWY_INLINE V polynomial(D d, V x, float c0, Higher... higher) {
  return fused(polynomial(d, x, higher...), x, hn::Set(d, c0));
}

/// Returns 1 / sqrt(x) of a single number.
template <class T>
HWY_INLINE T inverse_root(T x) {
  const hn::CappedTag<T, 1> d;
  return hn::GetLane(hn::Div(hn::Set(d, T{1}), hn::Sqrt(hn::Set(d, x))));
}

/// Return the lesser, and the greater, of x and a bound; a NaN in `x` stays.
template <class V>
HWY_INLINE V at_most(V x, V bound) {
  return hn::IfThenElse(hn::Gt(x, bound), bound, x);
}
template <class V>
HWY_INLINE V at_least(V x, V bound) {
  return hn::IfThenElse(hn::Lt(x, bound), bound, x);
}

/// A split of x = n ln 2 + r with |r| at most half of ln 2: n and e^r - 1.
template <class D>
struct Exponent {
  hn::Vec<hn::RebindToSigned<D>> n;
  hn::Vec<D> expm1;
};

/// Requires |x| below 2^21.
template <class D, class V = hn::Vec<D>>
HWY_INLINE Exponent<D> split_exponent(D d, V x) {
  const hn::RebindToSigned<D> di;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the lowest bits.
  const V shift = hn::Set(d, 0x1.8p23f);
  const V shifted = fused(x, hn::Set(d, 1.44269504f), shift);
  const V n = hn::Sub(shifted, shift);
  // ln 2 is split into two parts; n times the first is exact.
  const V r = fused(n, hn::Set(d, -0x1.7f7d1cp-20f), fused(n, hn::Set(d, -0x1.62e4p-1f), x));
  // r + r^2 q(r), with q by Remez's algorithm: relative error 2^-28 of e^r.
  const V q = polynomial(d, r, 0x1.fffffcp-2f, 0x1.55548cp-3f, 0x1.555858p-5f, 0x1.123ddep-7f,
                         0x1.6ac722p-10f);
  return {hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, shift)), fused(hn::Mul(r, r), q, r)};
}

/// Returns 2^n for n in [-126, 127].
template <class D, class VI = hn::Vec<hn::RebindToSigned<D>>>
HWY_INLINE hn::Vec<D> power_of_two(D d, VI n) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

/// Returns e^x, to 2 units in the last place.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  // Beyond these bounds the result is 0 or infinity.
  const V bounded = at_most(at_least(x, hn::Set(d, -105.0f)), hn::Set(d, 89.0f));
  const auto [n, expm1] = split_exponent(d, bounded);
  // 2^n in two factors, since n goes from -151 to 128.
  const auto half = hn::ShiftRight<1>(n);
  const V p = hn::Add(expm1, hn::Set(d, 1.0f));
  return hn::Mul(hn::Mul(p, power_of_two(d, half)), power_of_two(d, hn::Sub(n, half)));
}

/// Returns e^x for x <= 0, to 2 units in the last place, but 0 for x < -86. Faster than exp; meant
/// for sums that include e^0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_nonpositive(D d, V x) {
  const V lowest = hn::Set(d, -86.0f);
  const auto [n, expm1] = split_exponent(d, at_least(x, lowest));
  const V p = hn::Add(expm1, hn::Set(d, 1.0f));
  // n goes from -124 to 0, so it can be added to the exponent of p.
  const hn::RebindToSigned<D> di;
  const V y = hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(n)));
  return hn::IfThenElse(hn::Lt(x, lowest), hn::Zero(d), y);
}

/// Returns tanh x, to 3 units in the last place.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  // For |x| >= 9.02 the nearest float is 1.
  const V y = at_most(hn::Abs(x), hn::Set(d, 10.0f));
  const auto [n, expm1] = split_exponent(d, hn::Add(y, y));
  const V scale = power_of_two(d, n);
  const V e = fused(scale, expm1, hn::Sub(scale, one));  // e^2y - 1
  return hn::CopySign(hn::Div(e, hn::Add(e, hn::Set(d, 2.0f))), x);
}

/// Returns the error function, to 3 units in the last place.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf(D d, V x) {
  // For |x| >= 3.92 the nearest float is 1.
  const V y = at_most(hn::Abs(x), hn::Set(d, 3.95f));
  // For y up to 1: y + y s(y^2), relative error 2^-29.
  const V s = polynomial(d, hn::Mul(y, y), 0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2ce6p-4f,
                         -0x1.b7f71ap-6f, 0x1.53f224p-8f, -0x1.a3515ep-11f, 0x1.4771fep-14f);
  const V near = fused(y, s, y);
  // For y above 1: 1 - e^-l(y), relative error 2^-29.
  const V l = polynomial(d, y, 0x1.661d6cp-12f, 0x1.2088eap+0f, 0x1.46baf0p-1f, 0x1.a6531ap-4f,
                         -0x1.65cb1cp-6f, 0x1.825a3ap-9f, -0x1.86dc70p-13f);
  const auto [n, expm1] = split_exponent(d, hn::Neg(l));
  const V scale = power_of_two(d, n);
  const V one = hn::Set(d, 1.0f);
  const V far = hn::Sub(one, hn::Mul(scale, hn::Add(expm1, one)));
  return hn::CopySign(hn::IfThenElse(hn::Gt(y, one), far, near), x);
}

/// Returns the natural logarithm, to 2 units in the last place.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V infinity = hn::Inf(d);
  const auto denormal = hn::Lt(x, hn::Set(d, 0x1p-126f));
  const V normal = hn::IfThenElse(denormal, hn::Mul(x, hn::Set(d, 0x1p23f)), x);
  // normal = 2^n (1 + f), with 1 + f between sqrt(1/2) and sqrt(2).
  const auto root_half = hn::Set(di, 0x3f3504f3);
  const auto above = hn::Sub(hn::BitCast(di, normal), root_half);
  const auto exponent = hn::ShiftRight<23>(above);
  const auto mantissa = hn::Add(hn::And(above, hn::Set(di, 0x007fffff)), root_half);
  const V f = hn::Sub(hn::BitCast(d, mantissa), hn::Set(d, 1.0f));
  const V n = hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(denormal, hn::Set(d, 23.0f)));
  // f - f^2 / 2 + f^3 p(f), relative error 2^-28.
  const V p =
      polynomial(d, f, 0x1.555548p-2f, -0x1.000070p-2f, 0x1.99a542p-3f, -0x1.552f04p-3f,
                 0x1.230328p-3f, -0x1.01028ep-3f, 0x1.f01358p-4f, -0x1.bf42dcp-4f, 0x1.b42eb8p-5f);
  const V square = hn::Mul(f, f);
  const V tail =
      fused(square, fused(f, p, hn::Set(d, -0.5f)), hn::Mul(n, hn::Set(d, 0x1.7f7d1cp-20f)));
  const V finite = fused(n, hn::Set(d, 0x1.62e4p-1f), hn::Add(f, tail));
  // Infinity and NaN are their own logarithms.
  const V positive = hn::IfThenElse(hn::Lt(x, infinity), finite, x);
  const V zero = hn::Zero(d);
  const V other = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), hn::NaN(d));
  return hn::IfThenElse(hn::Gt(x, zero), positive, hn::IfThenElse(hn::IsNaN(x), x, other));
}

}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
