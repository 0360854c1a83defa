#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

#include "kernels/cpu/features.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/product_tile.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/arithmetic-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The sums that stay in registers: so many rows times so many vectors, next to a vector of each
// factor.
#if HWY_TARGET == HWY_SCALAR
constexpr int most_rows = 2;
constexpr int most_vectors = 4;
#elif HWY_TARGET == HWY_AVX2
constexpr int most_rows = 6;
constexpr int most_vectors = 2;
#elif HWY_TARGET == HWY_AVX3
constexpr int most_rows = 14;
constexpr int most_vectors = 2;
#else
constexpr int most_rows = 6;
constexpr int most_vectors = 4;
#endif
constexpr std::int64_t most_columns = lanes * most_vectors;
static_assert(panel_columns % most_columns == 0);

// Rows of the first factor are copied to where they lie at a fixed distance, so that every address
// in the inner loop is a constant away from one pointer and no two rows fight for a cache set.
constexpr std::int64_t block_depth = 256;  // In units, as all depth below.
struct ByRow {
  static constexpr std::int64_t row = block_depth + 16, depth = 1;
};
struct ByColumn {
  static constexpr std::int64_t row = 1, depth = 16;
};
constexpr std::int64_t strip_units = 16 * (block_depth + 16);

struct Sums {
  const float* start;
  std::int64_t start_stride;
  float* c;
  std::int64_t c_stride;
};

template <class Arithmetic, class Strip, int rows, int vectors, class U>
void tile(const U* HWY_RESTRICT strip, const U* HWY_RESTRICT panel, std::int64_t depth,
          const Sums& sums) {
  FloatVector sum[rows][vectors];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      sum[r][v] = hn::LoadU(Floats(), sums.start + r * sums.start_stride + v * lanes);
  for (std::int64_t k = 0; k < depth; ++k) {
    decltype(Arithmetic::load(panel)) b[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) b[v] = Arithmetic::load(panel + v * lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const auto a = Arithmetic::broadcast(strip[r * Strip::row]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) Arithmetic::add_product(a, b[v], sum[r][v]);
    }
    strip += Strip::depth;
    panel += panel_columns;
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      hn::StoreU(sum[r][v], Floats(), sums.c + r * sums.c_stride + v * lanes);
}

template <class U>
using Tile = void (*)(const U*, const U*, std::int64_t, const Sums&);

/// The function for one row, for two, ...
template <class Arithmetic, class Strip, int vectors, class U>
constexpr auto tiles = []<int... row>(std::integer_sequence<int, row...>) {
  return std::array<Tile<U>, most_rows>{tile<Arithmetic, Strip, row + 1, vectors, U>...};
}
(std::make_integer_sequence<int, most_rows>());

template <class Arithmetic, class Strip, class U>
void tile_of(int rows, std::int64_t columns, const U* strip, const U* panel, std::int64_t depth,
             const Sums& sums) {
  const auto at = static_cast<std::size_t>(rows - 1);
  const auto of = columns > lanes ? tiles<Arithmetic, Strip, most_vectors, U>[at]
                                  : tiles<Arithmetic, Strip, 1, U>[at];
  if (columns == lanes || columns == most_columns) return of(strip, panel, depth, sums);
  // What lies beyond the last column may belong to others.
  float whole[most_rows * most_columns] = {};
  for (int r = 0; r < rows; ++r)
    std::copy_n(sums.start + r * sums.start_stride, columns, whole + r * most_columns);
  of(strip, panel, depth, {whole, most_columns, whole, most_columns});
  for (int r = 0; r < rows; ++r)
    std::copy_n(whole + r * most_columns, columns, sums.c + r * sums.c_stride);
}

void copy_strip(ByRow, const Matrix<float>& a, int rows, std::int64_t numbers, float* strip) {
  for (int r = 0; r < rows; ++r)
    std::copy_n(a.data + r * a.stride, numbers, strip + r * ByRow::row);
}
void copy_strip(ByRow, const Matrix<BFloat16>& a, int rows, std::int64_t numbers, Bf16Pair* strip) {
  for (int r = 0; r < rows; ++r) {
    strip[r * ByRow::row + (numbers - 1) / 2] = Bf16Pair{};
    std::memcpy(strip + r * ByRow::row, a.data + r * a.stride,
                static_cast<std::size_t>(numbers) * sizeof(BFloat16));
  }
}
void copy_strip(ByColumn, const Matrix<float>& a, int rows, std::int64_t numbers, float* strip) {
  for (std::int64_t k = 0; k < numbers; ++k)
    std::copy_n(a.data + k * a.stride, rows, strip + k * ByColumn::depth);
}
void copy_strip(ByColumn, const Matrix<BFloat16>& a, int rows, std::int64_t numbers,
                Bf16Pair* strip) {
  for (std::int64_t k = 0; k < numbers; k += 2) {
    const BFloat16* first = a.data + k * a.stride;
    const BFloat16* second = first + a.stride;
    for (int r = 0; r < rows; ++r) {
      const std::uint32_t upper = k + 1 < numbers ? second[r].bits : 0;
      strip[k / 2 * ByColumn::depth + r] = static_cast<Bf16Pair>(first[r].bits | upper << 16);
    }
  }
}

template <class Arithmetic, class Strip, class Number>
void multiply_strips(const Product<Number>& p, const Panels<Number>& b) {
  static constexpr float zeros[panel_columns] = {};
  constexpr std::int64_t numbers = UnitOf<Number>::numbers;
  alignas(64) Unit<Number> strip[strip_units];
  const std::int64_t strips = (p.rows + most_rows - 1) / most_rows;
  for (std::int64_t k = 0; k < p.depth; k += block_depth * numbers) {
    const std::int64_t depth = std::min(block_depth * numbers, p.depth - k);
    for (std::int64_t s = 0; s < strips; ++s) {
      // Strips of nearly equal height: a thin last one would leave registers idle.
      const std::int64_t row = s * p.rows / strips;
      const int rows = static_cast<int>((s + 1) * p.rows / strips - row);
      copy_strip(Strip(), p.a.from(row, k), rows, depth, strip);
      for (std::int64_t column = 0; column < p.columns; column += most_columns) {
        const Unit<Number>* panel = b.data + column / panel_columns * b.stride +
                                    k / numbers * panel_columns + column % panel_columns;
        Sums sums{zeros, 0, p.c + row * p.c_stride + column, p.c_stride};
        if (k > 0) {
          sums.start = sums.c;
          sums.start_stride = p.c_stride;
        } else if (p.start) {
          sums.start = p.start + row * p.start_stride + column;
          sums.start_stride = p.start_stride;
        }
        tile_of<Arithmetic, Strip>(rows, std::min(most_columns, p.columns - column), strip, panel,
                                   units<Number>(depth), sums);
      }
    }
  }
}

template <class Arithmetic, class Number = typename Arithmetic::Number>
void multiply_with(const Product<Number>& p, const Panels<Number>& b) {
  switch (p.a.order) {
    case Order::by_row:
      return multiply_strips<Arithmetic, ByRow>(p, b);
    case Order::by_column:
      return multiply_strips<Arithmetic, ByColumn>(p, b);
  }
}

void multiply_f32(const Product<float>& p, const Panels<float>& b) { multiply_with<Fp32>(p, b); }
void multiply_bf16(const Product<BFloat16>& p, const Panels<BFloat16>& b) {
  has_bf16_instructions() ? multiply_with<Bf16ByPairs>(p, b) : multiply_with<Bf16ByFloats>(p, b);
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::kernels::cpu {

HWY_EXPORT(multiply_f32);
HWY_EXPORT(multiply_bf16);

void multiply(const Product<float>& product, const Panels<float>& b) {
  assert(product.depth > 0);
  HWY_DYNAMIC_DISPATCH(multiply_f32)(product, b);
}
void multiply(const Product<BFloat16>& product, const Panels<BFloat16>& b) {
  assert(product.depth > 0);
  HWY_DYNAMIC_DISPATCH(multiply_bf16)(product, b);
}

}  // namespace troupe::kernels::cpu
#endif
