// Included once per Highway target: the layout of a product's first factor for its inner loop.
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

/// A strip is a few rows of the first factor, at most `most_depth` units deep. Its layout says how
/// the inner loop walks through it. `together` strips are prefetched and copied at a time.
constexpr std::int64_t most_depth = 384;
constexpr std::int64_t strip_rows = 16;  // The maximum.
constexpr std::int64_t strip_units = strip_rows * (most_depth + 16);

/// The inner loop's position in a strip: [r] is the unit of row r. All addresses are a constant
/// away from one pointer.
template <std::int64_t row, class U>
struct AtColumn {
  const U* first;
  std::int64_t depth;

  HWY_INLINE U operator[](int r) const { return first[r * row]; }
  HWY_INLINE void next() { first += depth; }
};
/// The same for a row distance known only at run time. An address can add that distance once or
/// twice, so three rows share a pointer. Then the pointers of a whole strip fit into registers.
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

/// bf16 pairs, copied to a layout with constant distances.
struct ByRow {
  static constexpr bool is_copied = true;
  static constexpr std::int64_t row = most_depth + 16, together = 1;
  template <int rows, class U>
  HWY_INLINE auto at(const U* strip) const {
    return AtColumn<row, U>{strip, 1};
  }
};
/// A strip's rows fill less than a cache line, so several strips are copied together.
struct ByColumn {
  static constexpr bool is_copied = true;
  static constexpr std::int64_t depth = strip_rows, together = 5;
  template <int rows, class U>
  HWY_INLINE auto at(const U* strip) const {
    return AtColumn<1, U>{strip, depth};
  }
};
/// Rows of floats are multiplied in place: to copy each row took longer than to walk along them.
struct RowsInPlace {
  static constexpr bool is_copied = false;
  static constexpr std::int64_t together = 1;
  std::int64_t row;
  template <int rows, class U>
  HWY_INLINE auto at(const U* strip) const {
    return AtRows<rows, U>(strip, row);
  }
};
struct ColumnsInPlace {
  static constexpr bool is_copied = false;
  static constexpr std::int64_t together = 5;
  std::int64_t depth;
  template <int rows, class U>
  HWY_INLINE auto at(const U* strip) const {
    return AtColumn<1, U>{strip, depth};
  }
};

/// Floats of columns, copied side by side: `width` numbers for each unit of depth.
template <std::int64_t width>
struct CopiedColumns {
  static constexpr bool is_copied = true;
  static constexpr std::int64_t depth = width, together = 5;
  template <int rows, class U>
  HWY_INLINE auto at(const U* strip) const {
    return AtColumn<1, U>{strip, depth};
  }
};

/// A cut of rows into strips of nearly equal height: a thin last one would leave registers idle.
struct Strips {
  std::int64_t rows, count, least, higher;

  Strips(std::int64_t rows, std::int64_t most)
      : rows(rows),
        count((rows + most - 1) / most),
        least(count > 0 ? rows / count : 0),
        higher(rows - least * count) {}
  /// The first `higher` strips have one row more. Called so often that it must not divide.
  std::int64_t begin(std::int64_t strip) const { return strip * least + std::min(strip, higher); }
  std::int64_t height(std::int64_t strip) const { return least + (strip < higher ? 1 : 0); }
};

/// Copies all whole vectors, four at a time, and returns how many numbers it copied. One at a time
/// took twice as long, because each load waited for the previous store.
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

/// Copies a short row, for which calling memcpy takes as long as the copy itself.
HWY_INLINE void copy_row(const BFloat16* from, std::int64_t numbers, Bf16Pair* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  auto i =
      copy_vectors(hn::ScalableTag<std::uint16_t>(), reinterpret_cast<const std::uint16_t*>(from),
                   numbers, reinterpret_cast<std::uint16_t*>(to));
  for (; i < numbers; i += 2) to[i / 2] = pair(from[i], i + 1 < numbers ? from[i + 1] : BFloat16{});
}

/// Copies strips [first, last), `numbers` deep.
inline void copy_strips(ByRow, const Matrix<BFloat16>& a, const Strips& strips, std::int64_t first,
                        std::int64_t last, std::int64_t numbers, Bf16Pair* to) {
  for (std::int64_t s = first; s < last; ++s, to += strip_units) {
    const auto from = a.from(strips.begin(s), 0);
    const auto height = strips.height(s);
    for (std::int64_t r = 0; r < height; ++r)
      copy_row(from.data + r * from.stride, numbers, to + r * ByRow::row);
  }
}

/// Combines neighbours in depth into pairs. Rows after a strip's last may receive any numbers.
inline void copy_strips(ByColumn, const Matrix<BFloat16>& a, const Strips& strips,
                        std::int64_t first, std::int64_t last, std::int64_t numbers, Bf16Pair* to) {
  constexpr std::int64_t ahead = 32;
  for (std::int64_t k = 0; k < numbers; k += 2) {
    Bf16Pair* strip = to + k / 2 * ByColumn::depth;
    for (std::int64_t s = first; s < last; ++s, strip += strip_units) {
      // Copy strip_rows rows, which is faster, even if some belong to the next strip.
      const auto begin = strips.begin(s), rows = std::min(strip_rows, strips.rows - begin);
      // The processor does not predict the next row of a wide matrix.
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

/// Copies strips [first, last), `numbers` deep. Rows after a strip's last may receive any numbers.
template <std::int64_t width>
void copy_strips(CopiedColumns<width>, const Matrix<float>& a, const Strips& strips,
                 std::int64_t first, std::int64_t last, std::int64_t numbers, float* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, width> floats;
  constexpr std::int64_t lanes = hn::MaxLanes(floats), ahead = 16;
  for (std::int64_t k = 0; k < numbers; ++k) {
    float* strip = to + k * width;
    for (std::int64_t s = first; s < last; ++s, strip += strip_units) {
      const std::int64_t begin = strips.begin(s);
      const float* row = a.from(begin, k).data;
      // The processor does not predict the next row of a wide matrix.
      hwy::Prefetch(a.from(begin, k + ahead).data);
      if (const std::int64_t left = strips.rows - begin; left < width) {
        std::copy_n(row, left, strip);
        continue;
      }
#pragma GCC unroll 16
      for (std::int64_t j = 0; j < width; j += lanes)
        hn::StoreU(hn::LoadU(floats, row + j), floats, strip + j);
    }
  }
}

}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
