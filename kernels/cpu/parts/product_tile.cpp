#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "kernels/cpu/parts/ahead.h"
#include "kernels/cpu/parts/blocks.h"
#include "kernels/cpu/parts/features.h"
#include "kernels/cpu/parts/product.h"
#include "kernels/cpu/parts/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/parts/product_tile.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/arithmetic-inl.h"
#include "kernels/cpu/parts/strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The sums kept in registers: most_rows times most_vectors, beside a vector of each factor.
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
// Sums are arrays here, and g++ takes minutes to look through many of them.
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
static_assert(panel_columns % most_columns == 0 && most_rows <= strip_rows);

// Panels that are not packed are spread over more of the cache, so their blocks are less deep.
constexpr std::int64_t most_depth_unpacked = 256;

/// The addresses of a strip's sums, beginning with those of the first panel.
struct Sums {
  const float* start;
  std::int64_t start_row;      // Between rows.
  std::int64_t start_columns;  // Between the columns of neighbouring tiles.
  float* c;
  std::int64_t c_row;
};

template <class Arithmetic, class Operand, int... v>
HWY_INLINE void add_products(Operand a, const Operand* b, FloatVector* sum,
                             std::integer_sequence<int, v...>) {
  (Arithmetic::add_product(a, b[v], sum[v]), ...);
}

/// The factors of a tile: a strip with its layout, and a panel. `ahead` prefetches the next ones.
template <class Layout, class U>
struct Factors {
  const Layout& layout;
  const U* strip;
  const U* panel;
  std::int64_t panel_step;  // Between units of depth.
  std::int64_t depth;       // In units.
  Ahead& ahead;
};

/// Packs enumerate the sums instead of loops, so that each stays in a register from its first load
/// to its last store. Sum i belongs to row i / vectors.
template <class Arithmetic, int vectors, bool in_blocks, class Layout, class U, int... v, int... r,
          int... i>
HWY_INLINE void tile(const Factors<Layout, U>& factors, const Sums& sums,
                     std::integer_sequence<int, v...>, std::integer_sequence<int, r...>,
                     std::integer_sequence<int, i...>) {
  FloatVector sum[] = {
      hn::LoadU(Floats(), sums.start + i / vectors * sums.start_row + i % vectors * lanes)...};
  auto strip = factors.layout.template at<sizeof...(r)>(factors.strip);
  const U* HWY_RESTRICT panel = factors.panel;
  const std::int64_t panel_step = factors.panel_step;
  const auto add_step = [&]() HWY_ATTR __attribute__((always_inline)) {
    const decltype(Arithmetic::load(panel)) b[] = {Arithmetic::load(panel + v * lanes)...};
    (add_products<Arithmetic>(Arithmetic::broadcast(strip[r]), b, sum + r * vectors,
                              std::integer_sequence<int, v...>()),
     ...);
    strip.next();
    panel += panel_step;
  };
  // The processor does not predict when a loop ends whose number of steps changes.
  std::int64_t left = factors.depth;
  if constexpr (in_blocks)
    for (; left >= Ahead::step; left -= Ahead::step) {
      factors.ahead.fetch();
#pragma GCC unroll 8
      for (int u = 0; u < Ahead::step; ++u) add_step();
    }
  for (; left > 0; --left) add_step();
  (hn::StoreU(sum[i], Floats(), sums.c + i / vectors * sums.c_row + i % vectors * lanes), ...);
}
/// The code of blocks is long, so only tiles have it that a large product consists of: its strips
/// have almost `most_rows` rows.
template <class Arithmetic, int rows, int vectors, bool is_at_edge, class Layout, class U>
HWY_INLINE void tile(const Factors<Layout, U>& factors, const Sums& sums) {
  constexpr bool in_blocks = !is_at_edge && 2 * rows > most_rows;
  tile<Arithmetic, vectors, in_blocks>(factors, sums, std::make_integer_sequence<int, vectors>(),
                                       std::make_integer_sequence<int, rows>(),
                                       std::make_integer_sequence<int, rows * vectors>());
}

/// Computes a tile whose columns are not whole vectors, without writing beyond its last column.
template <class Arithmetic, int rows, class Layout, class U>
void edge_tile(const Factors<Layout, U>& factors, std::int64_t columns, const Sums& sums) {
  float whole[rows * most_columns] = {};
  for (int r = 0; r < rows; ++r)
    std::copy_n(sums.start + r * sums.start_row, columns, whole + r * most_columns);
  const Sums inner{whole, most_columns, 0, whole, most_columns};
  if (columns > lanes)
    tile<Arithmetic, rows, most_vectors, true>(factors, inner);
  else
    tile<Arithmetic, rows, 1, true>(factors, inner);
  for (int r = 0; r < rows; ++r)
    std::copy_n(whole + r * most_columns, columns, sums.c + r * sums.c_row);
}

/// Multiplies a strip of `rows` rows by all panels.
template <class Arithmetic, int rows, class Layout, class Number>
void multiply_strip(Factors<Layout, Unit<Number>> factors, const Panels<Number>& b,
                    std::int64_t columns, Sums sums) {
  for (std::int64_t column = 0; column < columns; column += most_columns) {
    factors.panel = b.data + column / panel_columns * b.stride + column % panel_columns;
    const std::int64_t left = columns - column;
    // Prefetch the next tile's sums during this one.
    if (left > most_columns)
      for (int r = 0; r < rows; ++r)
        for (std::int64_t v = 0; v < most_columns; v += lanes)
          hwy::Prefetch(sums.start + sums.start_columns + r * sums.start_row + v);
    if (left >= most_columns)
      tile<Arithmetic, rows, most_vectors, false>(factors, sums);
    else if (left == lanes)
      tile<Arithmetic, rows, 1, true>(factors, sums);
    else
      edge_tile<Arithmetic, rows>(factors, left, sums);
    sums.start += sums.start_columns;
    sums.c += most_columns;
  }
}

template <class Layout, class Number>
using MultiplyStrip = void (*)(Factors<Layout, Unit<Number>>, const Panels<Number>&, std::int64_t,
                               Sums);

/// Returns the functions for one row, two rows, ...
template <class Arithmetic, class Layout, class Number, int... before>
constexpr std::array<MultiplyStrip<Layout, Number>, most_rows> by_height(
    std::integer_sequence<int, before...>) {
  return {multiply_strip<Arithmetic, before + 1, Layout, Number>...};
}

template <class Arithmetic, class Layout, class Number = typename Arithmetic::Number>
void multiply_strips(const Product<Number>& p, const Layout& layout, const Panels<Number>& b) {
  static constexpr float zeros[most_columns] = {};
  static constexpr auto multiply_strip_of =
      by_height<Arithmetic, Layout, Number>(std::make_integer_sequence<int, most_rows>());
  constexpr std::int64_t numbers = UnitOf<Number>::numbers;
  alignas(64) Unit<Number> copies[Layout::is_copied ? Layout::together * strip_units : 1];
  const Strips strips(p.rows, most_rows);
  Sums from_start{zeros, 0, 0, p.c, p.c_stride};
  if (p.start) from_start = {p.start, p.start_stride, most_columns, p.c, p.c_stride};
  const Sums further{p.c, p.c_stride, most_columns, p.c, p.c_stride};
  // Blocks of equal depth, because even a thin block reads and writes all sums.
  const std::int64_t most = b.step == panel_columns ? most_depth : most_depth_unpacked;
  const std::int64_t all = units<Number>(p.depth), blocks = (all + most - 1) / most;
  const std::int64_t block_depth = (all + blocks - 1) / blocks * numbers;
  const std::int64_t tiles = (p.columns + most_columns - 1) / most_columns;
  const auto panels_from = [&](std::int64_t k) -> Panels<Number> {
    return {b.data + k / numbers * b.step, b.stride, b.step};
  };
  for (std::int64_t k = 0; k < p.depth; k += block_depth) {
    const std::int64_t depth = std::min(block_depth, p.depth - k);
    const std::int64_t next = k + depth, next_depth = std::min(block_depth, p.depth - next);
    const auto a = p.a.from(0, k);
    const auto block = panels_from(k);
    Lines next_panels, next_strips;
    if (next_depth > 0) next_panels = lines_of(panels_from(next), next_depth, p.columns);
    for (std::int64_t first = 0, last; first < strips.count; first = last) {
      const auto end_of = [&](std::int64_t s) {
        return std::min(strips.count, s + Layout::together);
      };
      last = end_of(first);
      if (last < strips.count)
        next_strips = lines_of(a.from(strips.begin(last), 0),
                               strips.begin(end_of(last)) - strips.begin(last), depth);
      else if (next_depth > 0)
        next_strips = lines_of(p.a.from(0, next), strips.begin(end_of(0)), next_depth);
      else
        next_strips = {};
      if constexpr (Layout::is_copied) copy_strips(layout, a, strips, first, last, depth, copies);
      for (std::int64_t s = first; s < last; ++s) {
        const Unit<Number>* strip;
        if constexpr (Layout::is_copied)
          strip = copies + (s - first) * strip_units;
        else
          strip = a.from(strips.begin(s), 0).data;
        Sums sums = k == 0 ? from_start : further;
        sums.start += strips.begin(s) * sums.start_row;
        sums.c += strips.begin(s) * sums.c_row;
        Ahead ahead(next_strips.share(s - first, last - first), next_panels.share(s, strips.count),
                    tiles * units<Number>(depth));
        multiply_strip_of[static_cast<std::size_t>(strips.height(s) - 1)](
            {layout, strip, nullptr, b.step, units<Number>(depth), ahead}, block, p.columns, sums);
      }
    }
  }
}

template <class Arithmetic>
void multiply_bf16_by(const Product<BFloat16>& p, const Panels<BFloat16>& b) {
  switch (p.a.order) {
    case Order::by_row:
      return multiply_strips<Arithmetic>(p, ByRow(), b);
    case Order::by_column:
      return multiply_strips<Arithmetic>(p, ByColumn(), b);
  }
}

// The numbers of a copied strip for each unit of depth: whole vectors.
constexpr std::int64_t width = (most_rows + lanes - 1) / lanes * lanes;

void multiply_f32(const Product<float>& p, const Panels<float>& b) {
  switch (p.a.order) {
    case Order::by_row:
      return multiply_strips<Fp32>(p, RowsInPlace{p.a.stride}, b);
    case Order::by_column:
      if (!reads_distant_rows_in_place())
        return multiply_strips<Fp32>(p, CopiedColumns<width>(), b);
      return multiply_strips<Fp32>(p, ColumnsInPlace{p.a.stride}, b);
  }
}
void multiply_bf16(const Product<BFloat16>& p, const Panels<BFloat16>& b) {
  has_bf16_pairs() ? multiply_bf16_by<Bf16ByPairs>(p, b) : multiply_bf16_by<Bf16ByFloats>(p, b);
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
  switch (product.sums) {
    case SumOrder::pairs:
      return HWY_DYNAMIC_DISPATCH(multiply_bf16)(product, b);
    case SumOrder::blocks:
      return multiply_blocks(product, b);
  }
}

}  // namespace troupe::kernels::cpu
#endif
