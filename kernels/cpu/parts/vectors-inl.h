// Loops over memory vector by vector, and sums in an order that is equal on all instruction sets.
// Included once per Highway target.

#if defined(TROUPE_KERNELS_CPU_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_CPU_VECTORS_INL_H
#undef TROUPE_KERNELS_CPU_VECTORS_INL_H
#else
#define TROUPE_KERNELS_CPU_VECTORS_INL_H
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The number of lanes of a sum, whatever the width of a vector.
constexpr std::int64_t virtual_lanes = 16;

using Floats = hn::CappedTag<float, virtual_lanes>;
using Doubles = hn::CappedTag<double, virtual_lanes>;
using FloatVector = hn::Vec<Floats>;
using DoubleVector = hn::Vec<Doubles>;

template <class D>
constexpr std::int64_t lanes_of = hn::MaxLanes(D());

/// Access to a whole vector of numbers. A vector of doubles may be read from floats.
template <class D>
struct Whole {
  template <class T>
  HWY_INLINE hn::Vec<D> load(const T* from) const {
    if constexpr (std::is_same_v<hn::TFromD<D>, T>)
      return hn::LoadU(D(), from);
    else
      return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<T, D>(), from));
  }
  HWY_INLINE void store(hn::Vec<D> v, hn::TFromD<D>* to) const { hn::StoreU(v, D(), to); }
  /// Returns `v` in lanes with numbers, and the other argument or zero elsewhere.
  HWY_INLINE hn::Vec<D> or_else(hn::Vec<D> v, hn::Vec<D>) const { return v; }
  HWY_INLINE hn::Vec<D> or_zero(hn::Vec<D> v) const { return v; }
};

/// Access to fewer numbers than a vector holds: missing ones are read as 0 and not written.
template <class D>
struct Rest {
  std::int64_t count;

  template <class T>
  HWY_INLINE hn::Vec<D> load(const T* from) const {
    HWY_ALIGN T padded[lanes_of<D>] = {};
    std::memcpy(padded, from, static_cast<std::size_t>(count) * sizeof(T));
    return Whole<D>().load(padded);
  }
  HWY_INLINE void store(hn::Vec<D> v, hn::TFromD<D>* to) const {
    HWY_ALIGN hn::TFromD<D> padded[lanes_of<D>];
    hn::Store(v, D(), padded);
    std::memcpy(to, padded, static_cast<std::size_t>(count) * sizeof(padded[0]));
  }
  HWY_INLINE hn::Vec<D> or_else(hn::Vec<D> v, hn::Vec<D> other) const {
    return hn::IfThenElse(hn::FirstN(D(), static_cast<std::size_t>(count)), v, other);
  }
  HWY_INLINE hn::Vec<D> or_zero(hn::Vec<D> v) const { return or_else(v, hn::Zero(D())); }
};

/// Calls body(at, i) for i = 0 and each vector after it; `at` loads and stores the vector.
template <class D = Floats, class Body>
HWY_INLINE void each_vector(std::int64_t count, Body body) {
  std::int64_t i = 0;
  for (; i + lanes_of<D> <= count; i += lanes_of<D>) body(Whole<D>(), i);
  if (i < count) body(Rest<D>{count - i}, i);
}

/// Combines a vector's lanes by a tree: each lane of the lower half with one of the upper half.
template <class D, class Combine>
HWY_INLINE hn::TFromD<D> fold_vector([[maybe_unused]] D d, hn::Vec<D> v,
                                     [[maybe_unused]] Combine combine) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(d) > 1) {
    const hn::Half<D> half;
    return fold_vector(half, combine(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), combine);
  }
#endif
  return hn::GetLane(v);
}

/// Accumulators by lane: element i goes to lane i % 16. walk() calls body(at, i, kept), in which
/// `kept` are the `n` vectors that accumulate the elements at i.
template <class D, int n>
struct Lanes {
  static constexpr std::int64_t vectors = virtual_lanes / lanes_of<D>;
  using T = hn::TFromD<D>;

  hn::Vec<D> kept[vectors][n];

  HWY_INLINE explicit Lanes(T start) {
    for (auto& vector : kept)
      for (auto& each : vector) each = hn::Set(D(), start);
  }

  template <class Body>
  HWY_INLINE void walk(std::int64_t count, Body body) {
    walk(count, body, std::make_integer_sequence<std::int64_t, vectors>());
  }

  /// Combines the lanes by a tree: 0 with 8, 1 with 9, ..., then 0 with 4, ...
  template <class Combine>
  HWY_INLINE T fold(int which, Combine combine) const {
    hn::Vec<D> rest[vectors];
    for (std::int64_t v = 0; v < vectors; ++v) rest[v] = kept[v][which];
    for (std::int64_t half = vectors / 2; half > 0; half /= 2)
      for (std::int64_t v = 0; v < half; ++v) rest[v] = combine(rest[v], rest[v + half]);
    return fold_vector(D(), rest[0], combine);
  }
  HWY_INLINE T sum(int which = 0) const {
    return fold(which, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
  }

 private:
  // A pack counts the vectors instead of a loop, so that each stays in a register.
  template <class Body, std::int64_t... v>
  HWY_INLINE void walk(std::int64_t count, Body body, std::integer_sequence<std::int64_t, v...>) {
    std::int64_t i = 0;
    for (; i + virtual_lanes <= count; i += virtual_lanes)
      (body(Whole<D>(), i + v * lanes_of<D>, kept[v]), ...);
    (walk_end(count, i + v * lanes_of<D>, body, kept[v]), ...);
  }
  template <class Body>
  static HWY_INLINE void walk_end(std::int64_t count, std::int64_t i, Body body,
                                  hn::Vec<D> (&vector)[n]) {
    if (i + lanes_of<D> <= count)
      body(Whole<D>(), i, vector);
    else if (i < count)
      body(Rest<D>{count - i}, i, vector);
  }
};

}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
