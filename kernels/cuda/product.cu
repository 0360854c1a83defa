#include "kernels/cuda/kernels.h"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/product_tile.cuh"
#include "kernels/cuda/row_sums.cuh"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

/// Computes a tile. Blocks of `blocks` per multiprocessor hide each other's waits.
template <int quads, int blocks>
__global__ void __launch_bounds__(threads_in_tile, blocks)
    multiply_tile(DeviceProduct<float> p, bool has_aligned_sums) {
  alignas(most_access) __shared__ Part<quads> a[2];
  alignas(most_access) __shared__ Part<quads> b[2];
  const auto at = thread_in_tile();
  const std::int64_t first_row = std::int64_t{blockIdx.y} * tile<quads>,
                     first_column = std::int64_t{blockIdx.x} * tile<quads>;

  Sums<quads> sums;
  each_quad(sums, at, first_row, first_column,
            [&](std::int64_t row, std::int64_t column, float* some) {
#pragma unroll
              for (int i = 0; i < quad; ++i) {
                const bool starts = p.start && row < p.rows && column + i < p.columns;
                some[i] = starts ? p.start[row * p.start_stride + column + i] : 0.0f;
              }
            });
  Reader<quads, float> of_a(p.a.data, p.a.row_stride, p.a.column_stride, first_row, p.rows);
  Reader<quads, float> of_b(p.b.data, p.b.column_stride, p.b.row_stride, first_column, p.columns);
  add_up(of_a, of_b, a, b, p.depth, at, sums);
  each_quad(sums, at, first_row, first_column,
            [&](std::int64_t row, std::int64_t column, const float* some) {
              if (row < p.rows)
                write_quad(p.c + row * p.c_stride, column, p.columns, some, has_aligned_sums);
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
