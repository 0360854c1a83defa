// Tiles of products in fp32, for product.cu and experts.cu.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/numbers.cuh"

namespace troupe::kernels::cuda {

// A block computes a square tile of the product. Each thread computes squares of sums of four rows
// and four columns, which are 64 rows or columns apart.
constexpr int threads_across = 16;
constexpr unsigned threads_in_tile = threads_across * threads_across;
constexpr int quad = 4;
constexpr int quads_apart = threads_across * quad;
constexpr int tile_depth = 8;

/// The rows and columns of a block's tile, if its threads have `quads` quads of each.
template <int quads>
constexpr int tile = (quads_apart * quads);

/// A part of a factor in shared memory. The padding spreads over all banks the numbers that a warp
/// writes along the depth, and keeps quads aligned.
template <int quads>
using Part = float[tile_depth][tile<quads> + quad];

/// Copies a block's part of a factor from global memory by way of a thread's registers. A line is a
/// row of the first factor or a column of the second. Neighbouring threads read neighbouring
/// memory.
template <int quads, class Number>
class Reader {
 public:
  static constexpr int each = tile<quads> * tile_depth / static_cast<int>(threads_in_tile);

  __device__ Reader(const Number* from, std::int64_t line_stride, std::int64_t depth_stride,
                    std::int64_t first_line, std::int64_t lines)
      : is_along_depth_(depth_stride == 1),
        to_next_part_(tile_depth * depth_stride),
        apart_(is_along_depth_ ? lines_apart * line_stride : depth_apart * depth_stride) {
    const int thread = static_cast<int>(threadIdx.x);
    line_ = is_along_depth_ ? thread / tile_depth : thread % tile<quads>;
    depth_ = is_along_depth_ ? thread % tile_depth : thread / tile<quads>;
    from_ = from + (first_line + line_) * line_stride + depth_ * depth_stride;
    for (int i = 0; i < each; ++i)
      if (first_line + line_ + (is_along_depth_ ? i * lines_apart : 0) < lines)
        existing_ |= 1u << i;
  }
  /// Reads the next part, of which `depth` is left. Numbers that do not exist are 0.
  __device__ void read(std::int64_t depth) {
    const Number* from = from_;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const bool exists = depth_ + (is_along_depth_ ? 0 : i * depth_apart) < depth;
      numbers_[i] = exists && (existing_ >> i & 1u) != 0 ? wide(*from) : 0.0f;
      from += apart_;
    }
    from_ += to_next_part_;
  }
  __device__ void write(Part<quads>& to) const {
    float* const first = &to[depth_][line_];
    constexpr int pitch = tile<quads> + quad;
#pragma unroll
    for (int i = 0; i < each; ++i)
      first[is_along_depth_ ? i * lines_apart : i * depth_apart * pitch] = numbers_[i];
  }

 private:
  // How far a thread's numbers are apart if threads read along the depth, and if along a line.
  static constexpr int lines_apart = static_cast<int>(threads_in_tile) / tile_depth;
  static constexpr int depth_apart = static_cast<int>(threads_in_tile) / tile<quads>;

  bool is_along_depth_;
  std::int64_t to_next_part_, apart_;
  const Number* from_;
  int line_, depth_;
  unsigned existing_ = 0;  // A bit for each number whose line exists.
  float numbers_[each];
};

/// A thread's sums. Each is one chain in the order of depth, with the bits of
/// kernels/cpu/parts/product.h.
template <int quads>
struct Sums {
  static constexpr int across = quads * quad;
  float sums[across][across];

  __device__ void add(const Part<quads>& a, const Part<quads>& b, int k, int x, int y) {
    float of_b[across];
#pragma unroll
    for (int q = 0; q < quads; ++q) {
      const auto some = read_pack<quad>(b[k], q * quads_apart + x * quad);
#pragma unroll
      for (int j = 0; j < quad; ++j) of_b[q * quad + j] = some[j];
    }
#pragma unroll
    for (int q = 0; q < quads; ++q) {
      const auto of_a = read_pack<quad>(a[k], q * quads_apart + y * quad);
#pragma unroll
      for (int i = 0; i < quad; ++i)
#pragma unroll
        for (int j = 0; j < across; ++j)
          sums[q * quad + i][j] = fmaf(of_a[i], of_b[j], sums[q * quad + i][j]);
    }
  }
};

/// A thread's place in the tile. A warp has eight columns and four rows of threads, and so reads
/// few banks at once.
struct ThreadInTile {
  int x, y;
};
__device__ inline ThreadInTile thread_in_tile() {
  const int thread = static_cast<int>(threadIdx.x);
  return {thread / 32 % 2 * 8 + thread % 8, thread / 64 * 4 + thread % 32 / 8};
}

/// Calls body(row, column, quad of sums) for each quad of neighbouring sums of the thread. The tile
/// begins at (first_row, first_column).
template <int quads, class Body>
__device__ void each_quad(Sums<quads>& sums, ThreadInTile at, std::int64_t first_row,
                          std::int64_t first_column, Body body) {
#pragma unroll
  for (int i = 0; i < Sums<quads>::across; ++i)
#pragma unroll
    for (int q = 0; q < quads; ++q)
      body(first_row + i / quad * quads_apart + at.y * quad + i % quad,
           first_column + q * quads_apart + at.x * quad, sums.sums[i] + q * quad);
}

/// Adds the products of `depth` columns of a and rows of b. While a part of the factors is
/// multiplied, the next one is read. The whole block calls it, with one depth.
template <int quads, class Number>
__device__ void add_up(Reader<quads, Number>& of_a, Reader<quads, Number>& of_b,
                       Part<quads> (&a)[2], Part<quads> (&b)[2], std::int64_t depth,
                       ThreadInTile at, Sums<quads>& sums) {
  of_a.read(depth);
  of_b.read(depth);
  of_a.write(a[0]);
  of_b.write(b[0]);
  __syncthreads();
  int now = 0;
  for (std::int64_t left = depth; left > 0; left -= tile_depth) {
    const bool has_next = left > tile_depth;
    if (has_next) {
      of_a.read(left - tile_depth);
      of_b.read(left - tile_depth);
    }
    if (left >= tile_depth) {
#pragma unroll
      for (int k = 0; k < tile_depth; ++k) sums.add(a[now], b[now], k, at.x, at.y);
    } else {
#pragma unroll 1
      for (int k = 0; k < static_cast<int>(left); ++k) sums.add(a[now], b[now], k, at.x, at.y);
    }
    if (!has_next) break;
    now = 1 - now;
    of_a.write(a[now]);
    of_b.write(b[now]);
    __syncthreads();
  }
}

/// Writes a thread's quad of sums to c, which has `columns`, from `column` on.
__device__ inline void write_quad(float* c, std::int64_t column, std::int64_t columns,
                                  const float* some, bool has_aligned_sums) {
  float* const to = c + column;
  if (has_aligned_sums && column + quad <= columns) {
    write_pack(to, 0, Pack<float, quad>{some[0], some[1], some[2], some[3]});
    return;
  }
#pragma unroll
  for (int i = 0; i < quad; ++i)
    if (column + i < columns) to[i] = some[i];
}

}  // namespace troupe::kernels::cuda
