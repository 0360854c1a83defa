#pragma once

#include <cstdint>

#include "core/memory/dtype.h"

namespace troupe::kernels::cpu {

/// A matrix where it lies: `stride` elements from one row to the next, or from one column to the
/// next.
enum class Order : std::uint8_t { by_row, by_column };
template <class Number>
struct Matrix {
  const Number* data = nullptr;
  std::int64_t stride = 0;
  Order order = Order::by_row;

  /// The matrix whose first element is the one at (row, column) of this.
  Matrix from(std::int64_t row, std::int64_t column) const {
    const auto skipped = order == Order::by_row ? row * stride + column : column * stride + row;
    return {data + skipped, stride, order};
  }
  Matrix transposed() const {
    return {data, stride, order == Order::by_row ? Order::by_column : Order::by_row};
  }
};

/// Two neighbours in depth, the first in the lower half: what bf16 products take at once.
enum class Bf16Pair : std::uint32_t {};

/// What a product takes in one step of its inner loop, and how many numbers that is.
template <class Number>
struct UnitOf;
template <>
struct UnitOf<float> {
  using type = float;
  static constexpr std::int64_t numbers = 1;
};
template <>
struct UnitOf<BFloat16> {
  using type = Bf16Pair;
  static constexpr std::int64_t numbers = 2;
};
template <class Number>
using Unit = typename UnitOf<Number>::type;

/// How many units hold so many numbers.
template <class Number>
constexpr std::int64_t units(std::int64_t numbers) {
  return (numbers + UnitOf<Number>::numbers - 1) / UnitOf<Number>::numbers;
}

/// The second factor of a product is packed into panels of so many columns. A panel holds them unit
/// by unit of depth; what is missing in the last panel, or in the last pair, is zero.
constexpr std::int64_t panel_columns = 32;

constexpr std::int64_t panel_count(std::int64_t columns) {
  return (columns + panel_columns - 1) / panel_columns;
}

/// Packs `depth` x `columns` numbers; panel j begins at panels + j * panel_stride.
void pack_panels(const Matrix<float>& matrix, std::int64_t depth, std::int64_t columns,
                 float* panels, std::int64_t panel_stride);
void pack_panels(const Matrix<BFloat16>& matrix, std::int64_t depth, std::int64_t columns,
                 Bf16Pair* panels, std::int64_t panel_stride);

}  // namespace troupe::kernels::cpu
