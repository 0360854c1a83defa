// Sums over the rows of a matrix, one or more per column, in the order of kernels/row_sums.h.
#pragma once

#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/tile.cuh"
#include "kernels/row_sums.h"

namespace troupe::kernels::cuda {

/// Small, so that a matrix of a few hundred columns occupies the whole GPU.
constexpr unsigned columns_in_block = 64;

/// The target of row_sums(): `count` sums per column, which are added to `to`.
template <int count>
struct RowSums {
  float* to[count];
  std::int64_t rows, columns;
  float* pieces;  // [count, pieces, columns]; unused if there is only one piece.

  __device__ void keep(int which, std::int64_t column, float sum) const {
    if (gridDim.y == 1)
      to[which][column] += sum;
    else
      pieces[(which * std::int64_t{gridDim.y} + blockIdx.y) * columns + column] = sum;
  }
};

/// With so many blocks on a multiprocessor, each thread has registers for the loads of many rows.
constexpr unsigned blocks_of_sums = 12;

/// Sums pieces of rows: one block per piece and group of columns, one thread per column.
template <int count, class Term>
__global__ void __launch_bounds__(columns_in_block, blocks_of_sums)
    sum_piece(RowSums<count> all, Term term) {
  const std::int64_t column = std::int64_t{blockIdx.x} * columns_in_block + threadIdx.x;
  if (column >= all.columns) return;
  const std::int64_t first = std::int64_t{blockIdx.y} * rows_in_piece;
  const std::int64_t end = lesser(all.rows, first + rows_in_piece);
  float sums[count] = {};
  // Only the additions are serial; several rows are loaded at once.
#pragma unroll 16
  for (std::int64_t row = first; row < end; ++row) term(row, column, sums);
  for (int which = 0; which < count; ++which) all.keep(which, column, sums[which]);
}

/// Adds the sums of all pieces, one thread per column and sum. There are few threads, so each has
/// registers for many loads at once.
template <int count>
__global__ void __launch_bounds__(columns_in_block, 1)
    add_pieces(RowSums<count> all, std::int64_t pieces) {
  const std::int64_t i = std::int64_t{blockIdx.x} * columns_in_block + threadIdx.x;
  if (i >= count * all.columns) return;
  const std::int64_t which = i / all.columns, column = i % all.columns;
  const float* sums = all.pieces + which * pieces * all.columns + column;
  float total = 0;
#pragma unroll 32
  for (std::int64_t piece = 0; piece < pieces; ++piece) total += sums[piece * all.columns];
#pragma unroll
  for (int each = 0; each < count; ++each)
    if (each == which) all.to[each][column] += total;
}

/// Calls term(row, column, sums), which adds a row's terms to the sums of a column.
template <int count, class Term>
void row_sums(Stream& stream, RowSums<count> all, const Term& term) {
  const auto pieces = blocks_for(all.rows, rows_in_piece).x;
  Tensor made;
  if (pieces > 1) {
    made = stream.make({count, std::int64_t{pieces}, all.columns});
    all.pieces = made.f32();
  }
  launch(stream, dim3(blocks_for(all.columns, columns_in_block).x, pieces), dim3(columns_in_block),
         sum_piece<count, Term>, all, term);
  if (pieces > 1)
    launch(stream, blocks_for(count * all.columns, columns_in_block), dim3(columns_in_block),
           add_pieces<count>, all, std::int64_t{pieces});
}

/// A term of row_sums(): the matrix's own numbers.
template <class Number>
struct NumberOfRow {
  const Number* x;
  std::int64_t columns;
  __device__ void operator()(std::int64_t row, std::int64_t column, float (&sums)[1]) const {
    sums[0] += wide(x[row * columns + column]);
  }
};

/// sum[c] += the sum over rows of x[r, c].
template <class Number>
void add_up_rows(Stream& stream, const Number* x, float* sum, std::int64_t rows,
                 std::int64_t columns) {
  row_sums(stream, RowSums<1>{{sum}, rows, columns, nullptr}, NumberOfRow<Number>{x, columns});
}

}  // namespace troupe::kernels::cuda
