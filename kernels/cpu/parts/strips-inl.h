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
#include "kernels/cpu/parts/pairs-inl.h"
#include "kernels/cpu/parts/panels.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {

/// A strip is a few rows of the first factor, and so much depth of them in units. How it lies says
/// how an inner loop walks through it. `together` of them are fetched, and copied, at a time.
constexpr std::int64_t most_depth = 384;
constexpr std::int64_t strip_rows = 16;  // At most.
constexpr std::int64_t strip_units = strip_rows * (most_depth + 16);

/// Where an inner loop is in a strip: [r] is the unit of row r. All addresses are a constant away
/// from one pointer.
template <std::int64_t row, class U>
struct AtColumn {
  const U* first;
  std::int64_t depth;

  HWY_INLINE U operator[](int r) const { return first[r * row]; }
  HWY_INLINE void next() { first += depth; }
};
/// The same where the distance between rows is no constant. An address may have that once or twice:
/// so three rows share a pointer, and a whole strip has pointers enough.
template <int rows, class U>
struct AtRows {
  static constexpr int count = (rows + 2) / 3;
  const U* third[count];
  std::int64_t row;

  HWY_INLINE AtRows(const U* strip, std::int64_t row) : row(row) {
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) third[i] = strip + 3 * i * row;
  }
  HWY_INLINE U operator[](int r) const { return third[r / 3][r % 3 * row]; }
  HWY_INLINE void next() {
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) ++third[i];
  }
};

/// Pairs of bf16 copied to where all distances are constant.
struct ByRow {
  static constexpr bool is_copied = true;
  static constexpr std::int64_t row = most_depth + 16, together = 1;
  template <int rows, class U>
  HWY_INLINE auto at(const U* strip) const {
    return AtColumn<row, U>{strip, 1};
  }
};
/// Here the rows of a strip are less than a cache line: alone, each would fetch it again.
struct ByColumn {
  static constexpr bool is_copied = true;
  static constexpr std::int64_t depth = strip_rows, together = 5;
  template <int rows, class U>
  HWY_INLINE auto at(const U* strip) const {
    return AtColumn<1, U>{strip, depth};
  }
};
/// Floats are multiplied where they lie: a copy of each row took longer than to walk along the
/// rows.
struct RowsWhereTheyLie {
  static constexpr bool is_copied = false;
  static constexpr std::int64_t together = 1;
  std::int64_t row;
  template <int rows, class U>
  HWY_INLINE auto at(const U* strip) const {
    return AtRows<rows, U>(strip, row);
  }
};
struct ColumnsWhereTheyLie {
  static constexpr bool is_copied = false;
  static constexpr std::int64_t together = 5;
  std::int64_t depth;
  template <int rows, class U>
  HWY_INLINE auto at(const U* strip) const {
    return AtColumn<1, U>{strip, depth};
  }
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

/// So many whole vectors as there are, four at a time: where each load waited for the store before
/// it, the copy took twice as long. Returns how many numbers that was.
template <class Floats, class Number>
HWY_INLINE std::int64_t copy_vectors(Floats tag, const Number* from, std::int64_t numbers,
                                     Number* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr std::int64_t lanes = hn::MaxLanes(tag);
  std::int64_t i = 0;
  for (; i + 4 * lanes <= numbers; i += 4 * lanes) {
    const auto a = hn::LoadU(tag, from + i), b = hn::LoadU(tag, from + i + lanes);
    const auto c = hn::LoadU(tag, from + i + 2 * lanes), d = hn::LoadU(tag, from + i + 3 * lanes);
    hn::StoreU(a, tag, to + i);
    hn::StoreU(b, tag, to + i + lanes);
    hn::StoreU(c, tag, to + i + 2 * lanes);
    hn::StoreU(d, tag, to + i + 3 * lanes);
  }
  for (; i + lanes <= numbers; i += lanes) hn::StoreU(hn::LoadU(tag, from + i), tag, to + i);
  return i;
}

/// Short rows: calling memcpy for each would take as long as the copy itself.
HWY_INLINE void copy_row(const BFloat16* from, std::int64_t numbers, Bf16Pair* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  auto i =
      copy_vectors(hn::ScalableTag<std::uint16_t>(), reinterpret_cast<const std::uint16_t*>(from),
                   numbers, reinterpret_cast<std::uint16_t*>(to));
  for (; i < numbers; i += 2) to[i / 2] = pair(from[i], i + 1 < numbers ? from[i + 1] : BFloat16{});
}

/// Copies the strips from `first` to before `last`, `numbers` deep.
inline void copy_strips(ByRow, const Matrix<BFloat16>& a, const Strips& strips, std::int64_t first,
                        std::int64_t last, std::int64_t numbers, Bf16Pair* to) {
  for (std::int64_t s = first; s < last; ++s, to += strip_units) {
    const auto from = a.from(strips.begin(s), 0);
    const auto height = strips.height(s);
    for (std::int64_t r = 0; r < height; ++r)
      copy_row(from.data + r * from.stride, numbers, to + r * ByRow::row);
  }
}

/// Neighbours in depth become pairs. Beyond the last number of a column any may be written.
inline void copy_strips(ByColumn, const Matrix<BFloat16>& a, const Strips& strips,
                        std::int64_t first, std::int64_t last, std::int64_t numbers, Bf16Pair* to) {
  constexpr std::int64_t ahead = 32;
  for (std::int64_t k = 0; k < numbers; k += 2) {
    Bf16Pair* strip = to + k / 2 * ByColumn::depth;
    for (std::int64_t s = first; s < last; ++s, strip += strip_units) {
      // A round number of rows copies faster: also some of the next strip's, where there are any.
      const auto begin = strips.begin(s), rows = std::min(strip_rows, strips.rows - begin);
      // The processor does not foresee the next row of a wide matrix.
      hwy::Prefetch(a.from(begin, k + ahead).data);
      const BFloat16* even = a.from(begin, k).data;
      if (k + 1 < numbers)
        interleave(even, even + a.stride, rows, strip);
      else
        std::transform(even, even + rows, strip,
                       [](BFloat16 number) { return pair(number, BFloat16{}); });
    }
  }
}

}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
