// Included once for each target of Highway: the first factor of a product, as its inner loop wants
// it.
#if defined(TROUPE_KERNELS_CPU_STRIPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_CPU_STRIPS_INL_H
#undef TROUPE_KERNELS_CPU_STRIPS_INL_H
#else
#define TROUPE_KERNELS_CPU_STRIPS_INL_H
#endif

#include <algorithm>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/cpu/pairs-inl.h"
#include "kernels/cpu/panels.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {

/// A strip is a few rows of the first factor, and so much depth of them in units. They are copied
/// to where they lie at fixed distances, so that every address in the inner loop is a constant away
/// from one pointer and no two rows fight for a cache set.
constexpr std::int64_t most_depth = 384;
constexpr std::int64_t strip_rows = 16;  // At most.
constexpr std::int64_t strip_units = strip_rows * (most_depth + 16);

/// `row` and `depth` are the distances; `together` strips are copied at a time.
struct ByRow {
  static constexpr std::int64_t row = most_depth + 16, depth = 1, together = 1;
};
/// Here the rows of a strip are less than a cache line: copied alone, each would fetch it again.
struct ByColumn {
  static constexpr std::int64_t row = 1, depth = strip_rows, together = 5;
};

/// Cuts rows into strips of nearly equal height: a thin last one would leave registers idle.
struct Strips {
  std::int64_t rows, count, least, higher;

  Strips(std::int64_t rows, std::int64_t most)
      : rows(rows),
        count((rows + most - 1) / most),
        least(count > 0 ? rows / count : 0),
        higher(rows - least * count) {}
  /// The first ones have a row more. Asked for so often that it must not divide.
  std::int64_t begin(std::int64_t strip) const { return strip * least + std::min(strip, higher); }
  std::int64_t height(std::int64_t strip) const { return least + (strip < higher ? 1 : 0); }
};

/// Short rows: calling memcpy for each would take as long as the copy itself.
HWY_INLINE void copy_row(const float* from, std::int64_t numbers, float* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> floats;
  constexpr std::int64_t lanes = hn::MaxLanes(floats);
  std::int64_t i = 0;
  for (; i + lanes <= numbers; i += lanes) hn::StoreU(hn::LoadU(floats, from + i), floats, to + i);
  for (; i < numbers; ++i) to[i] = from[i];
}
HWY_INLINE void copy_row(const BFloat16* from, std::int64_t numbers, Bf16Pair* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<std::uint16_t> halves;
  constexpr std::int64_t lanes = hn::MaxLanes(halves);
  auto* halves_to = reinterpret_cast<std::uint16_t*>(to);
  std::int64_t i = 0;
  for (; i + lanes <= numbers; i += lanes)
    hn::StoreU(hn::LoadU(halves, &from[i].bits), halves, halves_to + i);
  for (; i < numbers; i += 2) to[i / 2] = pair(from[i], i + 1 < numbers ? from[i + 1] : BFloat16{});
}

/// Copies the strips from `first` to before `last`, `numbers` deep.
template <class Number>
void copy_strips(ByRow, const Matrix<Number>& a, const Strips& strips, std::int64_t first,
                 std::int64_t last, std::int64_t numbers, Unit<Number>* to) {
  for (std::int64_t s = first; s < last; ++s, to += strip_units) {
    const auto from = a.from(strips.begin(s), 0);
    const auto height = strips.height(s);
    for (std::int64_t r = 0; r < height; ++r)
      copy_row(from.data + r * from.stride, numbers, to + r * ByRow::row);
  }
}

/// Calling memcpy for a few numbers would take longer than copying them. Beyond the last one any
/// may be written.
HWY_INLINE void copy_column(const Matrix<float>& a, std::int64_t k, std::int64_t,
                            std::int64_t count, float* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, strip_rows> floats;
  constexpr std::int64_t lanes = hn::MaxLanes(floats);
  const float* from = a.data + k * a.stride;
  std::int64_t r = 0;
  for (; r + lanes <= count; r += lanes) hn::StoreU(hn::LoadU(floats, from + r), floats, to + r);
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if (r < count) {
    const auto there = hn::FirstN(floats, static_cast<std::size_t>(count - r));
    hn::StoreU(hn::MaskedLoad(there, floats, from + r), floats, to + r);
  }
#else
  for (; r < count; ++r) to[r] = from[r];
#endif
}
HWY_INLINE void copy_column(const Matrix<BFloat16>& a, std::int64_t k, std::int64_t numbers,
                            std::int64_t count, Bf16Pair* to) {
  if (k + 1 < numbers)
    interleave(a.from(0, k).data, a.from(0, k + 1).data, count, to);
  else
    std::transform(a.from(0, k).data, a.from(0, k).data + count, to,
                   [](BFloat16 number) { return pair(number, BFloat16{}); });
}

template <class Number>
void copy_strips(ByColumn, const Matrix<Number>& a, const Strips& strips, std::int64_t first,
                 std::int64_t last, std::int64_t numbers, Unit<Number>* to) {
  constexpr auto step = UnitOf<Number>::numbers;
  constexpr auto ahead = 16 * step;
  for (std::int64_t k = 0; k < numbers; k += step) {
    Unit<Number>* strip = to + k / step * ByColumn::depth;
    for (std::int64_t s = first; s < last; ++s, strip += strip_units) {
      // A round number of rows copies faster: also some of the next strip's, where there are any.
      const auto begin = strips.begin(s), rows = std::min(strip_rows, strips.rows - begin);
      // The processor does not foresee the next row of a wide matrix.
      hwy::Prefetch(a.from(begin, k + ahead).data);
      copy_column(a.from(begin, 0), k, numbers, rows, strip);
    }
  }
}

}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
