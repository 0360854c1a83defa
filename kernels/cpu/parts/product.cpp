#include "kernels/cpu/parts/product.h"

#include <algorithm>

#include "kernels/cpu/parts/features.h"

namespace troupe::kernels::cpu {
namespace {

/// A cut of a matrix into tiles of nearly equal size, with columns cut between panels. Tiles fit
/// the second cache, or are smaller so that each thread gets two. The cut may depend on the number
/// of threads, because sums do not depend on the cut.
struct Tiles {
  std::int64_t rows, columns;
  std::int64_t row_pieces, column_pieces;

  Tiles(std::int64_t rows, std::int64_t columns, std::int64_t most_rows, std::int64_t most_columns,
        int threads)
      : rows(rows), columns(columns) {
    constexpr std::int64_t least = 64;
    const auto cut = [&] {
      row_pieces = (rows + most_rows - 1) / most_rows;
      column_pieces = (columns + most_columns - 1) / most_columns;
    };
    for (cut(); threads > 1 && count() < 2 * threads; cut()) {
      const auto height = std::min(rows, most_rows), width = std::min(columns, most_columns);
      if (std::max(height, width) < 2 * least) break;
      (height > width ? most_rows : most_columns) = std::max(height, width) / 2;
    }
  }

  std::int64_t count() const { return row_pieces * column_pieces; }

  struct Tile {
    std::int64_t row, rows, column, columns;
  };
  /// Returns tile i. Neighbours share columns, so the panels in the cache serve the next tile.
  Tile operator[](std::int64_t i) const {
    const auto first_row = [&](std::int64_t piece) { return piece * rows / row_pieces; };
    const auto first_column = [&](std::int64_t piece) {
      return std::min(piece * panel_count(columns) / column_pieces * panel_columns, columns);
    };
    const auto r = i % row_pieces, c = i / row_pieces;
    return {first_row(r), first_row(r + 1) - first_row(r), first_column(c),
            first_column(c + 1) - first_column(c)};
  }
};

template <class Number>
Product<Number> part(const Product<Number>& whole, const Tiles::Tile& tile) {
  Product<Number> p = whole;
  p.rows = tile.rows;
  p.columns = tile.columns;
  p.a = whole.a.from(tile.row, 0);
  if (whole.start) p.start = whole.start + tile.row * whole.start_stride + tile.column;
  p.c = whole.c + tile.row * whole.c_stride + tile.column;
  return p;
}

}  // namespace

template <class Number>
void multiply(Stream& stream, const Product<Number>& product, const Panels<Number>& b) {
  const Tiles tiles(product.rows, product.columns, 256, 512, stream.threads());
  stream.for_each(tiles.count(), [&](std::int64_t i) {
    const auto tile = tiles[i];
    multiply(part(product, tile),
             {b.data + tile.column / panel_columns * b.stride, b.stride, b.step});
  });
}

template <class Number>
void multiply(MemoryPool& memory, const Product<Number>& product, const Matrix<Number>& b,
              std::int64_t most_depth) {
  if constexpr (std::is_same_v<Number, float>)
    if (const auto panels = as_panels(b, product.columns); panels && reads_distant_rows_in_place())
      return multiply(product, *panels);
  constexpr std::int64_t most_units = 256;
  auto p = product;
  const auto stride = std::min(most_units, units<Number>(most_depth)) * panel_columns;
  const BlockHandle block =
      memory.take(static_cast<std::size_t>(panel_count(p.columns) * stride) * sizeof(Unit<Number>));
  auto* panels = reinterpret_cast<Unit<Number>*>(block.get()->memory);
  constexpr auto step = most_units * UnitOf<Number>::numbers;
  static_assert(step % terms_in_block == 0);
  for (std::int64_t k = 0; k < product.depth; k += step) {
    p.depth = std::min(step, product.depth - k);
    p.a = product.a.from(0, k);
    pack_panels(b.from(k, 0), p.depth, p.columns, panels, stride);
    multiply(p, {panels, stride});
    p.start = p.c;
    p.start_stride = p.c_stride;
  }
}

template <class Number>
void multiply(Stream& stream, const Product<Number>& product, const Matrix<Number>& b) {
  const Tiles tiles(product.rows, product.columns, 512, 512, stream.threads());
  stream.for_each(tiles.count(), [&](std::int64_t i) {
    const auto tile = tiles[i];
    multiply(stream.memory(), part(product, tile), b.from(0, tile.column), product.depth);
  });
}

template void multiply(Stream&, const Product<float>&, const Panels<float>&);
template void multiply(Stream&, const Product<BFloat16>&, const Panels<BFloat16>&);
template void multiply(MemoryPool&, const Product<float>&, const Matrix<float>&, std::int64_t);
template void multiply(MemoryPool&, const Product<BFloat16>&, const Matrix<BFloat16>&,
                       std::int64_t);
template void multiply(Stream&, const Product<float>&, const Matrix<float>&);
template void multiply(Stream&, const Product<BFloat16>&, const Matrix<BFloat16>&);

}  // namespace troupe::kernels::cpu
