#pragma once

#include <cstdint>

#include "core/memory/dtype.h"

namespace troupe::kernels::cpu {

/// A matrix in its stored layout: `stride` elements lie between rows, or between columns.
enum class Order : std::uint8_t { by_row, by_column };
template <class Number>
struct Matrix {
  const Number* data = nullptr;
  std::int64_t stride = 0;
  Order order = Order::by_row;

  /// Returns the submatrix that begins at (row, column).
  Matrix from(std::int64_t row, std::int64_t column) const {
    const auto skipped = order == Order::by_row ? row * stride + column : column * stride + row;
    return {data + skipped, stride, order};
  }
  Matrix transposed() const {
    return {data, stride, order == Order::by_row ? Order::by_column : Order::by_row};
  }
};

/// Two neighbours in depth, the first in the lower half: the unit of bf16 products.
enum class Bf16Pair : std::uint32_t {};

/// The input of one step of a product's inner loop, and how many numbers it holds.
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

/// Returns the number of units that hold `numbers` numbers.
template <class Number>
constexpr std::int64_t units(std::int64_t numbers) {
  return (numbers + UnitOf<Number>::numbers - 1) / UnitOf<Number>::numbers;
}

/// The columns of a panel. A product's second factor is packed into panels, each stored unit by
/// unit of depth. Zeros fill the last panel and the last pair.
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
