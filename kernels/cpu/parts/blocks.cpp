#include "kernels/cpu/parts/blocks.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/cpu/parts/amx.h"
#include "kernels/cpu/parts/features.h"
#include "kernels/cpu/parts/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/parts/blocks.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/arithmetic-inl.h"
#include "kernels/cpu/parts/pairs-inl.h"
#include "kernels/cpu/parts/transpose-inl.h"

#ifndef TROUPE_KERNELS_CPU_BLOCKS_ONCE
#define TROUPE_KERNELS_CPU_BLOCKS_ONCE
namespace troupe::kernels::cpu {
namespace {

// Two by two tiles of sums, so that four loads serve four products.
constexpr std::int64_t square = 2 * amx::tile_size;
static_assert(square == panel_columns);
constexpr std::int64_t block_pairs = terms_in_block / 2;
static_assert(block_pairs == amx::tile_size);

/// The pairs of a square's rows in one block of terms: two tiles of the first factor.
constexpr std::int64_t strip_block = square * block_pairs;

/// The depth, in blocks, at which a strip of the first factor fits into the first-level cache.
constexpr std::int64_t most_blocks = 16;

/// The addresses of a square of sums. Strides are in floats.
struct Square {
  const float* start;  // The initial values; null: zeros.
  std::int64_t start_stride;
  float* c;
  std::int64_t c_stride;
  float* next;  // The sums of the next square, for prefetching.
};

/// Adds `blocks` blocks of a strip times a panel to a whole square of sums.
using AddBlocks = void (*)(const Bf16Pair* strip, const Bf16Pair* panel, std::int64_t blocks,
                           const Square& sums);

#if defined(__x86_64__)
void add_blocks_by_tiles(const Bf16Pair* strip, const Bf16Pair* panel, std::int64_t blocks,
                         const Square& sums) {
  using namespace amx;
  constexpr std::int64_t row = 64;
  if (sums.start) {
    const std::int64_t stride = sums.start_stride * 4, below = sums.start_stride * tile_size;
    load<0>(sums.start, stride);
    load<1>(sums.start + tile_size, stride);
    load<2>(sums.start + below, stride);
    load<3>(sums.start + below + tile_size, stride);
  } else {
    clear<0>();
    clear<1>();
    clear<2>();
    clear<3>();
  }
  for (std::int64_t block = 0; block < blocks; ++block) {
    load<4>(strip, row);
    load<6>(panel, 2 * row);
    load<7>(panel + tile_size, 2 * row);
    load<5>(strip + tile_size * block_pairs, row);
    add_product<0, 4, 6>();
    add_product<1, 4, 7>();
    add_product<2, 5, 6>();
    add_product<3, 5, 7>();
    for (std::int64_t r = block * square / blocks; r < (block + 1) * square / blocks; ++r) {
      __builtin_prefetch(sums.next + r * sums.c_stride, 1);
      __builtin_prefetch(sums.next + r * sums.c_stride + tile_size, 1);
    }
    strip += strip_block;
    panel += block_pairs * panel_columns;
  }
  const std::int64_t stride = sums.c_stride * 4, below = sums.c_stride * tile_size;
  store<0>(sums.c, stride);
  store<1>(sums.c + tile_size, stride);
  store<2>(sums.c + below, stride);
  store<3>(sums.c + below + tile_size, stride);
}
#endif

}  // namespace
}  // namespace troupe::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

/// Adds one block to a vector of columns of some rows, whose sums all stay in registers.
template <int rows>
HWY_INLINE void add_block(const Bf16Pair* a, const Bf16Pair* panel, float* c, std::int64_t stride) {
  FloatVector even[rows], odd[rows];
  for (int r = 0; r < rows; ++r) even[r] = odd[r] = hn::Zero(Floats());
  for (std::int64_t k = 0; k < block_pairs; ++k) {
    const auto b = Bf16::load(panel + k * panel_columns);
    const auto b_even = Bf16ByFloats::first(b), b_odd = Bf16ByFloats::second(b);
    for (int r = 0; r < rows; ++r) {
      const auto pair = Bf16::broadcast(a[r * block_pairs + k]);
      even[r] = fused(Bf16ByFloats::first(pair), b_even, even[r]);
      odd[r] = fused(Bf16ByFloats::second(pair), b_odd, odd[r]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    float* to = c + r * stride;
    hn::StoreU(hn::Add(hn::LoadU(Floats(), to), hn::Add(even[r], odd[r])), Floats(), to);
  }
}

void add_blocks_by_vectors(const Bf16Pair* strip, const Bf16Pair* panel, std::int64_t blocks,
                           const Square& sums) {
  constexpr int rows = 4;
  for (std::int64_t r = 0; r < square; ++r) {
    float* to = sums.c + r * sums.c_stride;
    if (!sums.start)
      std::fill_n(to, square, 0.0f);
    else if (sums.start != sums.c)
      std::copy_n(sums.start + r * sums.start_stride, square, to);
  }
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::int64_t r = 0; r < square; r += rows)
      for (std::int64_t column = 0; column < square; column += lanes)
        add_block<rows>(strip + r * block_pairs, panel + column,
                        sums.c + r * sums.c_stride + column, sums.c_stride);
    strip += strip_block;
    panel += block_pairs * panel_columns;
  }
}

/// Copies the terms of one row in a block. Calling memcpy would take longer than the copy.
HWY_INLINE void copy_block(const BFloat16* from, Bf16Pair* to) {
  const hn::CappedTag<std::uint16_t, terms_in_block> halves;
  constexpr std::int64_t halves_in_vector = hn::MaxLanes(halves);
  auto* halves_to = reinterpret_cast<std::uint16_t*>(to);
#pragma GCC unroll 32
  for (std::int64_t i = 0; i < terms_in_block; i += halves_in_vector)
    hn::StoreU(hn::LoadU(halves, &from[i].bits), halves, halves_to + i);
}

/// Copies at most `square` rows of the first factor, `terms` deep, as tiles of whole blocks. Fills
/// the rest with zeros.
void copy_strip(const Matrix<BFloat16>& a, std::int64_t rows, std::int64_t terms, Bf16Pair* to) {
  const std::int64_t whole = terms / terms_in_block,
                     blocks = (terms + terms_in_block - 1) / terms_in_block;
  if (rows < square || whole < blocks) std::fill_n(to, blocks * strip_block, Bf16Pair{});
  switch (a.order) {
    case Order::by_row:
      for (std::int64_t r = 0; r < rows; ++r) {
        const BFloat16* from = a.data + r * a.stride;
        Bf16Pair* row = to + r * block_pairs;
        for (std::int64_t block = 0; block < whole; ++block)
          copy_block(from + block * terms_in_block, row + block * strip_block);
        if (whole < blocks)
          std::memcpy(row + whole * strip_block, from + whole * terms_in_block,
                      static_cast<std::size_t>(terms - whole * terms_in_block) * sizeof(BFloat16));
      }
      break;
    case Order::by_column:
      for (std::int64_t block = 0; block < blocks; ++block) {
        alignas(64) Bf16Pair pairs[block_pairs * square];  // One row per depth.
        const std::int64_t first = block * terms_in_block, left = terms - first;
        const std::int64_t together = std::min(left, terms_in_block) / 2;
        for (std::int64_t k = 0; k < together; ++k)
          interleave(a.from(0, first + 2 * k).data, a.from(0, first + 2 * k + 1).data, rows,
                     pairs + k * square);
        transpose(pairs, square * 4, rows, together, to + block * strip_block, block_pairs * 4);
        if (left < terms_in_block && left % 2 != 0)
          for (std::int64_t r = 0; r < rows; ++r)
            to[block * strip_block + r * block_pairs + together] =
                pair(*a.from(r, first + left - 1).data, BFloat16{});
      }
      break;
  }
}

void multiply(const Product<BFloat16>& p, const Panels<BFloat16>& b, AddBlocks add_blocks) {
  alignas(64) Bf16Pair strip[most_blocks * strip_block];
  alignas(64) Bf16Pair last_of_panel[block_pairs * panel_columns];
  for (std::int64_t k = 0; k < p.depth; k += most_blocks * terms_in_block) {
    const std::int64_t terms = std::min(most_blocks * terms_in_block, p.depth - k);
    const std::int64_t whole = terms / terms_in_block;
    const std::int64_t left = units<BFloat16>(terms - whole * terms_in_block);
    const float* start = k == 0 ? p.start : p.c;
    const std::int64_t start_stride = k == 0 ? p.start_stride : p.c_stride;
    for (std::int64_t i = 0; i < p.rows; i += square) {
      const std::int64_t rows = std::min(square, p.rows - i);
      copy_strip(p.a.from(i, k), rows, terms, strip);
      for (std::int64_t j = 0; j < p.columns; j += square) {
        const std::int64_t columns = std::min(square, p.columns - j);
        const Bf16Pair* panel = b.data + j / panel_columns * b.stride + k / 2 * panel_columns;
        float* c = p.c + i * p.c_stride + j;
        Square sums{start ? start + i * start_stride + j : nullptr, start_stride, c, p.c_stride,
                    c + square};
        // At the edge, memory beyond the square may belong to others, so sums go through a buffer.
        alignas(64) float edge[square * square];
        const bool at_edge = rows < square || columns < square;
        if (at_edge) {
          if (sums.start)
            for (std::int64_t r = 0; r < rows; ++r)
              std::copy_n(sums.start + r * start_stride, columns, edge + r * square);
          sums = {sums.start ? edge : nullptr, square, edge, square, edge};
        }
        if (whole > 0) {
          add_blocks(strip, panel, whole, sums);
          sums.start = sums.c;
          sums.start_stride = sums.c_stride;
        }
        if (left > 0) {
          const Bf16Pair* last = panel + whole * block_pairs * panel_columns;
          std::fill(std::copy_n(last, left * panel_columns, last_of_panel), std::end(last_of_panel),
                    Bf16Pair{});
          add_blocks(strip + whole * strip_block, last_of_panel, 1, sums);
        }
        if (at_edge)
          for (std::int64_t r = 0; r < rows; ++r)
            std::copy_n(edge + r * square, columns, c + r * p.c_stride);
      }
    }
  }
}

void multiply_in_blocks(const Product<BFloat16>& p, const Panels<BFloat16>& b) {
#if HWY_TARGET == HWY_AVX3
  if (has_bf16_tiles()) {
    const amx::Registers registers;
    return multiply(p, b, add_blocks_by_tiles);
  }
#endif
  multiply(p, b, add_blocks_by_vectors);
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::kernels::cpu {

HWY_EXPORT(multiply_in_blocks);

void multiply_blocks(const Product<BFloat16>& product, const Panels<BFloat16>& b) {
  HWY_DYNAMIC_DISPATCH(multiply_in_blocks)(product, b);
}

}  // namespace troupe::kernels::cpu
#endif
