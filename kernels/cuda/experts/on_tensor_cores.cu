// Products of experts on tensor cores, which multiply numbers of 16 bits and sum in fp32. A row's
// results do not depend on the other rows, and equal calls have equal bits.

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/experts/fragments.cuh"
#include "kernels/cuda/experts/launches.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tile.cuh"
#include "kernels/experts.h"

namespace troupe::kernels::cuda {
namespace {

// A block has eight warps and computes a square of sums. A warp computes 64 rows and 32 columns.
constexpr int square = 128;
constexpr unsigned threads_in_square = 256;
constexpr int rows_of_warp = 64, columns_of_warp = 32;
constexpr int warps_across = square / columns_of_warp;
constexpr int step_depth = 16;  // The depth of one instruction.
constexpr int part_depth = 32;
constexpr int parts_in_flight = 3;
constexpr int chunks_in_part = square * part_depth / in_chunk;
constexpr std::size_t shared_of_square =
    std::size_t{2} * parts_in_flight * chunks_in_part * sizeof(Chunk);
static_assert(shared_of_square <= usual_shared_bytes);

/// How a factor lies in memory. A line is a row of the first factor or a column of the second.
enum class Along : std::uint8_t { depth, lines };

/// The place of a chunk in a part. Eight chunks that are read together lie in different banks.
template <Along along>
__device__ int place_of_chunk(int line, int depth) {
  if constexpr (along == Along::depth)
    return line * (part_depth / in_chunk) + (depth / in_chunk ^ (line >> 1 & 3));
  else
    return depth * (square / in_chunk) + (line / in_chunk ^ (depth & 7));
}

/// Copies a block's parts of a factor from global to shared memory.
template <class Number, Along along>
class PartReader {
 public:
  __device__ PartReader(const Number* from, std::int64_t stride, std::int64_t first_line,
                        std::int64_t lines) {
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int chunk = thread + i * static_cast<int>(threads_in_square);
      constexpr int in_line = (along == Along::depth ? part_depth : square) / in_chunk;
      const int outer = chunk / in_line, inner = chunk % in_line * in_chunk;
      line_[i] = along == Along::depth ? outer : inner;
      depth_[i] = along == Along::depth ? inner : outer;
      const std::int64_t line = first_line + line_[i];
      exists_[i] = line < lines;
      from_[i] =
          from + (along == Along::depth ? line * stride + depth_[i] : depth_[i] * stride + line);
    }
    to_next_part_ = along == Along::depth ? part_depth : part_depth * stride;
  }
  /// Begins to copy the next part, of which `depth` is left.
  __device__ void begin(Chunk* part, std::int64_t depth) {
#pragma unroll
    for (int i = 0; i < each; ++i) {
      begin_copy(part + place_of_chunk<along>(line_[i], depth_[i]), from_[i],
                 exists_[i] && depth_[i] < depth);
      from_[i] += to_next_part_;
    }
  }

 private:
  static constexpr int each = chunks_in_part / static_cast<int>(threads_in_square);

  const Number* from_[each];
  int line_[each], depth_[each];
  bool exists_[each];
  std::int64_t to_next_part_;
};

/// Reads 16 lines and 16 of the depth for the first factor of a product.
template <Along along>
__device__ Fragment first_factor(const Chunk* part, int line, int depth) {
  const int thread = static_cast<int>(threadIdx.x % warp);
  if constexpr (along == Along::depth)
    return read_fragment<false>(
        part + place_of_chunk<along>(line + thread % 16, depth + thread / 16 * in_chunk));
  else
    return read_fragment<true>(part +
                               place_of_chunk<along>(line + thread / 8 % 2 * in_chunk,
                                                     depth + thread % 8 + thread / 16 * in_chunk));
}
/// Reads 16 lines and 16 of the depth for the second factors of two products.
template <Along along>
__device__ Fragment second_factor(const Chunk* part, int line, int depth) {
  const int thread = static_cast<int>(threadIdx.x % warp);
  if constexpr (along == Along::depth)
    return read_fragment<false>(part +
                                place_of_chunk<along>(line + thread % 8 + thread / 16 * in_chunk,
                                                      depth + thread / 8 % 2 * in_chunk));
  else
    return read_fragment<true>(
        part + place_of_chunk<along>(line + thread / 16 * in_chunk, depth + thread % 16));
}

/// The first row and column of this warp's sums in the square.
__device__ inline int row_of_warp() {
  return static_cast<int>(threadIdx.x / warp) / warps_across * rows_of_warp;
}
__device__ inline int column_of_warp() {
  return static_cast<int>(threadIdx.x / warp) % warps_across * columns_of_warp;
}

/// A warp's sums.
struct SumsOfWarp {
  static constexpr int down = rows_of_warp / 16, across = columns_of_warp / 8;
  float sums[down][across][4];

  template <class Number, Along of_a, Along of_b>
  __device__ void add(const Chunk* a, const Chunk* b) {
    const int row = row_of_warp(), column = column_of_warp();
#pragma unroll
    for (int depth = 0; depth < part_depth; depth += step_depth) {
      Fragment first[down], second[across / 2];
#pragma unroll
      for (int i = 0; i < down; ++i) first[i] = first_factor<of_a>(a, row + 16 * i, depth);
#pragma unroll
      for (int j = 0; j < across / 2; ++j)
        second[j] = second_factor<of_b>(b, column + 16 * j, depth);
#pragma unroll
      for (int i = 0; i < down; ++i)
#pragma unroll
        for (int j = 0; j < across; ++j)
          add_product<Number>(sums[i][j], first[i].pairs, second[j / 2].pairs[j % 2 * 2],
                              second[j / 2].pairs[j % 2 * 2 + 1]);
    }
  }
  /// Calls body(row, column, two sums) for each pair of neighbouring sums of the thread.
  template <class Body>
  __device__ void each_pair(std::int64_t first_row, std::int64_t first_column, Body body) {
    const int thread = static_cast<int>(threadIdx.x % warp);
    const std::int64_t row = first_row + row_of_warp() + thread / 4;
    const std::int64_t column = first_column + column_of_warp() + thread % 4 * 2;
#pragma unroll
    for (int i = 0; i < down; ++i)
#pragma unroll
      for (int j = 0; j < across; ++j) {
        body(row + 16 * i, column + 8 * j, sums[i][j]);
        body(row + 16 * i + 8, column + 8 * j, sums[i][j] + 2);
      }
  }
};

/// Adds the products of `depth` columns of a and rows of b. The whole block calls it, and a warp
/// says whether any of its sums exist.
template <class Number, Along of_a, Along of_b>
__device__ void add_products(PartReader<Number, of_a>& a, PartReader<Number, of_b>& b,
                             std::int64_t depth, bool exist, SumsOfWarp& sums) {
  Chunk* const parts_of_a = reinterpret_cast<Chunk*>(dynamic_shared());
  Chunk* const parts_of_b = parts_of_a + parts_in_flight * chunks_in_part;
  std::int64_t unread = depth;
  const auto begin_next = [&](int place) {
    if (unread > 0) {
      a.begin(parts_of_a + place * chunks_in_part, unread);
      b.begin(parts_of_b + place * chunks_in_part, unread);
      unread -= part_depth;
    }
    end_group_of_copies();
  };
  for (int i = 0; i < parts_in_flight - 1; ++i) begin_next(i);
  int place = 0;
  for (std::int64_t left = depth; left > 0; left -= part_depth) {
    wait_for_copies<parts_in_flight - 2>();
    __syncthreads();  // All copies of this part are done, and nobody reads the one before.
    begin_next(place == 0 ? parts_in_flight - 1 : place - 1);
    if (exist)
      sums.add<Number, of_a, of_b>(parts_of_a + place * chunks_in_part,
                                   parts_of_b + place * chunks_in_part);
    place = place == parts_in_flight - 1 ? 0 : place + 1;
  }
}

/// Computes a square of an expert's rows.
template <class Number, Along of_matrix>
__global__ void __launch_bounds__(threads_in_square, 2)
    multiply_expert_by_warps(DeviceExperts<Number> p, Matrices<Number> matrices, int experts) {
  const auto rows = rows_of_block(p.bounds, experts, square);
  if (rows.expert == experts) return;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * square;
  PartReader<Number, Along::depth> a(p.x, p.depth, rows.first, rows.end);
  PartReader<Number, of_matrix> b(matrices.of[rows.expert],
                                  of_matrix == Along::depth ? p.column_stride : p.row_stride,
                                  first_column, p.columns);
  SumsOfWarp sums = {};
  const bool exist =
      rows.first + row_of_warp() < rows.end && first_column + column_of_warp() < p.columns;
  add_products<Number>(a, b, p.depth, exist, sums);
  sums.each_pair(rows.first, first_column,
                 [&](std::int64_t row, std::int64_t column, const float* pair) {
                   if (row < rows.end && column < p.columns)
                     write_pack(p.y, row * p.columns + column, Pack<float, 2>{pair[0], pair[1]});
                 });
}

/// Computes a square of the gradient of an expert's matrix. Experts lie along y, squares along x.
template <class Number>
__global__ void __launch_bounds__(threads_in_square, 2)
    gradient_of_expert_by_warps(DeviceExpertGradients<Number> p, Gradients gradients) {
  float* const dw = gradients.of[blockIdx.y];
  const bool begins = (gradients.begin >> blockIdx.y & 1) != 0;
  const std::int64_t begin = p.bounds[blockIdx.y], depth = p.bounds[blockIdx.y + 1] - begin;
  if (!dw || (depth == 0 && !begins)) return;
  const std::int64_t across = (p.b_columns + square - 1) / square;
  const std::int64_t first_row = blockIdx.x / across * square,
                     first_column = blockIdx.x % across * square;
  SumsOfWarp sums = {};
  const auto exists = [&](std::int64_t row, std::int64_t column) {
    return row < p.a_columns && column < p.b_columns;
  };
  if (!begins)
    sums.each_pair(first_row, first_column,
                   [&](std::int64_t row, std::int64_t column, float* pair) {
                     if (!exists(row, column)) return;
                     const auto start = read_pack<2>(dw, row * p.b_columns + column);
                     pair[0] = start[0];
                     pair[1] = start[1];
                   });
  if (depth > 0) {
    PartReader<Number, Along::lines> a(p.a + begin * p.a_columns, p.a_columns, first_row,
                                       p.a_columns);
    PartReader<Number, Along::lines> b(p.b + begin * p.b_columns, p.b_columns, first_column,
                                       p.b_columns);
    add_products<Number>(a, b, depth,
                         exists(first_row + row_of_warp(), first_column + column_of_warp()), sums);
  }
  sums.each_pair(first_row, first_column,
                 [&](std::int64_t row, std::int64_t column, const float* pair) {
                   if (exists(row, column))
                     write_pack(dw, row * p.b_columns + column, Pack<float, 2>{pair[0], pair[1]});
                 });
}

}  // namespace

template <class Number>
void multiply_experts_on_tensor_cores(Stream& stream, const DeviceExperts<Number>& product,
                                      std::span<const Number* const> matrices) {
  const bool has_chunks = product.columns % in_chunk == 0 && product.depth % in_chunk == 0 &&
                          are_aligned(product.x, product.y) &&
                          std::ranges::all_of(matrices, are_aligned<Number>);
  if (!has_chunks) return multiply_experts(stream, product, matrices);
  const auto kernel = product.row_stride == 1 ? multiply_expert_by_warps<Number, Along::depth>
                                              : multiply_expert_by_warps<Number, Along::lines>;
  each_launch(product, matrices, square,
              [&](const auto& part, const auto& some, int experts, unsigned tiles) {
                launch_with_shared(stream, dim3(blocks_for(product.columns, square).x, tiles),
                                   dim3(threads_in_square), shared_of_square, kernel, part, some,
                                   experts);
              });
}
template void multiply_experts_on_tensor_cores(Stream&, const DeviceExperts<Float16>&,
                                               std::span<const Float16* const>);
template void multiply_experts_on_tensor_cores(Stream&, const DeviceExperts<BFloat16>&,
                                               std::span<const BFloat16* const>);

template <class Number>
void gradients_of_experts_on_tensor_cores(Stream& stream,
                                          const DeviceExpertGradients<Number>& product,
                                          std::span<const ExpertGradient> gradients) {
  const bool has_chunks = product.a_columns % in_chunk == 0 && product.b_columns % in_chunk == 0 &&
                          are_aligned(product.a, product.b) &&
                          std::ranges::all_of(gradients, [](const ExpertGradient& gradient) {
                            return are_aligned(gradient.dw);
                          });
  if (!has_chunks) return gradients_of_experts(stream, product, gradients);
  each_launch(product, gradients, [&](const auto& part, const Gradients& some, unsigned experts) {
    launch_with_shared(
        stream,
        dim3(blocks_for(product.b_columns, square).x * blocks_for(product.a_columns, square).x,
             experts),
        dim3(threads_in_square), shared_of_square, gradient_of_expert_by_warps<Number>, part, some);
  });
}
template void gradients_of_experts_on_tensor_cores(Stream&, const DeviceExpertGradients<Float16>&,
                                                   std::span<const ExpertGradient>);
template void gradients_of_experts_on_tensor_cores(Stream&, const DeviceExpertGradients<BFloat16>&,
                                                   std::span<const ExpertGradient>);

}  // namespace troupe::kernels::cuda
