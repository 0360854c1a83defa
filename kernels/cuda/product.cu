#include "kernels/cuda/kernels.h"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/row_sums.cuh"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

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
template <int quads>
class Reader {
 public:
  static constexpr int each = tile<quads> * tile_depth / static_cast<int>(threads_in_tile);

  __device__ Reader(const float* from, std::int64_t line_stride, std::int64_t depth_stride,
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
    const float* from = from_;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const bool exists = depth_ + (is_along_depth_ ? 0 : i * depth_apart) < depth;
      numbers_[i] = exists && (existing_ >> i & 1u) != 0 ? *from : 0.0f;
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
  const float* from_;
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

/// Calls body(row, column, quad of sums) for each quad of neighbouring sums of the thread.
template <int quads, class Body>
__device__ void each_quad(Sums<quads>& sums, int x, int y, Body body) {
#pragma unroll
  for (int i = 0; i < Sums<quads>::across; ++i)
#pragma unroll
    for (int q = 0; q < quads; ++q)
      body(std::int64_t{blockIdx.y} * tile<quads> + i / quad * quads_apart + y * quad + i % quad,
           std::int64_t{blockIdx.x} * tile<quads> + q * quads_apart + x * quad,
           sums.sums[i] + q * quad);
}

/// Computes a tile. While a part of the factors is multiplied, the next one is read. Blocks of
/// `blocks` per multiprocessor hide each other's waits.
template <int quads, int blocks>
__global__ void __launch_bounds__(threads_in_tile, blocks)
    multiply_tile(DeviceProduct<float> p, bool has_aligned_sums) {
  alignas(most_access) __shared__ Part<quads> a[2];
  alignas(most_access) __shared__ Part<quads> b[2];
  // A warp has eight columns and four rows of threads, and so reads few banks at once.
  const int thread = static_cast<int>(threadIdx.x);
  const int x = thread / 32 % 2 * 8 + thread % 8, y = thread / 64 * 4 + thread % 32 / 8;

  Sums<quads> sums;
  each_quad(sums, x, y, [&](std::int64_t row, std::int64_t column, float* some) {
#pragma unroll
    for (int i = 0; i < quad; ++i) {
      const bool starts = p.start && row < p.rows && column + i < p.columns;
      some[i] = starts ? p.start[row * p.start_stride + column + i] : 0.0f;
    }
  });
  Reader<quads> of_a(p.a.data, p.a.row_stride, p.a.column_stride,
                     std::int64_t{blockIdx.y} * tile<quads>, p.rows);
  Reader<quads> of_b(p.b.data, p.b.column_stride, p.b.row_stride,
                     std::int64_t{blockIdx.x} * tile<quads>, p.columns);
  of_a.read(p.depth);
  of_b.read(p.depth);
  of_a.write(a[0]);
  of_b.write(b[0]);
  __syncthreads();
  int now = 0;
  for (std::int64_t left = p.depth; left > 0; left -= tile_depth) {
    const bool has_next = left > tile_depth;
    if (has_next) {
      of_a.read(left - tile_depth);
      of_b.read(left - tile_depth);
    }
    if (left >= tile_depth) {
#pragma unroll
      for (int k = 0; k < tile_depth; ++k) sums.add(a[now], b[now], k, x, y);
    } else {
#pragma unroll 1
      for (int k = 0; k < static_cast<int>(left); ++k) sums.add(a[now], b[now], k, x, y);
    }
    if (!has_next) break;
    now = 1 - now;
    of_a.write(a[now]);
    of_b.write(b[now]);
    __syncthreads();
  }
  each_quad(sums, x, y, [&](std::int64_t row, std::int64_t column, const float* some) {
    if (row >= p.rows) return;
    float* const to = p.c + row * p.c_stride + column;
    if (has_aligned_sums && column + quad <= p.columns) {
      write_pack(to, 0, Pack<float, quad>{some[0], some[1], some[2], some[3]});
      return;
    }
#pragma unroll
    for (int i = 0; i < quad; ++i)
      if (column + i < p.columns) to[i] = some[i];
  });
}

template <int quads, int blocks>
void multiply_tiles(Stream& stream, const DeviceProduct<float>& product) {
  const bool has_aligned_sums = product.c_stride % quad == 0 && are_aligned(product.c);
  launch(stream,
         dim3(blocks_for(product.columns, tile<quads>).x, blocks_for(product.rows, tile<quads>).x),
         dim3(threads_in_tile), multiply_tile<quads, blocks>, product, has_aligned_sums);
}

}  // namespace

void multiply(Stream& stream, const DeviceProduct<float>& product) {
  // Large tiles need fewer accesses for a sum, but must occupy all multiprocessors.
  constexpr int large = 2, small = 1;
  const std::int64_t tiles = std::int64_t{blocks_for(product.columns, tile<large>).x} *
                             blocks_for(product.rows, tile<large>).x;
  if (tiles >= limit_of_gpu(cudaDevAttrMultiProcessorCount))
    multiply_tiles<large, 2>(stream, product);
  else
    multiply_tiles<small, 3>(stream, product);
}

void bias_backward(Stream& stream, const float* dy, float* db, std::int64_t rows,
                   std::int64_t columns) {
  add_up_rows(stream, dy, db, rows, columns);
}

}  // namespace troupe::kernels::cuda
