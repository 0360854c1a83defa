#include "kernels/cuda/kernels.h"
#include "kernels/cuda/row_sums.cuh"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

// A block computes a square tile of the product. Each thread computes a square of sums,
// `threads_across` rows and columns apart, so that neighbouring threads access neighbouring memory.
constexpr int threads_across = 16;
constexpr int sums_across = 4;
constexpr int tile = threads_across * sums_across;
constexpr int tile_depth = 16;

/// Returns whether neighbours in depth are neighbours in memory; threads then read along the depth.
__device__ bool is_along(std::int64_t depth_stride) { return depth_stride == 1; }

/// Copies the block's part of a factor. A line is a row of the first factor or a column of the
/// second.
__device__ void read(float (&to)[tile_depth][tile + 1], const float* from, std::int64_t line_stride,
                     std::int64_t depth_stride, std::int64_t first_line, std::int64_t lines,
                     std::int64_t first_depth, std::int64_t depth) {
  for (int i = static_cast<int>(threadIdx.x); i < tile * tile_depth;
       i += threads_across * threads_across) {
    const int line = is_along(depth_stride) ? i / tile_depth : i % tile;
    const int k = is_along(depth_stride) ? i % tile_depth : i / tile;
    const bool exists = first_line + line < lines && first_depth + k < depth;
    to[k][line] =
        exists ? from[(first_line + line) * line_stride + (first_depth + k) * depth_stride] : 0.0f;
  }
}

/// Each sum is one chain in the order of depth, with the bits of kernels/cpu/parts/product.h.
__global__ void multiply_tile(DeviceProduct<float> p) {
  __shared__ float a[tile_depth][tile + 1];
  __shared__ float b[tile_depth][tile + 1];
  const int x = static_cast<int>(threadIdx.x) % threads_across;
  const int y = static_cast<int>(threadIdx.x) / threads_across;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * tile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * tile;
  const auto row_of = [&](int i) { return first_row + y + i * threads_across; };
  const auto column_of = [&](int j) { return first_column + x + j * threads_across; };

  float sums[sums_across][sums_across];
  for (int i = 0; i < sums_across; ++i)
    for (int j = 0; j < sums_across; ++j) {
      const bool exists = row_of(i) < p.rows && column_of(j) < p.columns;
      sums[i][j] = p.start && exists ? p.start[row_of(i) * p.start_stride + column_of(j)] : 0.0f;
    }
  for (std::int64_t first = 0; first < p.depth; first += tile_depth) {
    read(a, p.a.data, p.a.row_stride, p.a.column_stride, first_row, p.rows, first, p.depth);
    read(b, p.b.data, p.b.column_stride, p.b.row_stride, first_column, p.columns, first, p.depth);
    __syncthreads();
    const int depth = static_cast<int>(std::min<std::int64_t>(tile_depth, p.depth - first));
    for (int k = 0; k < depth; ++k) {
      float of_b[sums_across];
      for (int j = 0; j < sums_across; ++j) of_b[j] = b[k][x + j * threads_across];
      for (int i = 0; i < sums_across; ++i) {
        const float of_a = a[k][y + i * threads_across];
        for (int j = 0; j < sums_across; ++j) sums[i][j] = fmaf(of_a, of_b[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < sums_across; ++i)
    for (int j = 0; j < sums_across; ++j)
      if (row_of(i) < p.rows && column_of(j) < p.columns)
        p.c[row_of(i) * p.c_stride + column_of(j)] = sums[i][j];
}

}  // namespace

void multiply(Stream& stream, const DeviceProduct<float>& product) {
  launch(stream, dim3(blocks_for(product.columns, tile).x, blocks_for(product.rows, tile).x),
         dim3(threads_across * threads_across), multiply_tile, product);
}

void bias_backward(Stream& stream, const float* dy, float* db, std::int64_t rows,
                   std::int64_t columns) {
  add_up_rows(stream, dy, db, rows, columns);
}

}  // namespace troupe::kernels::cuda
