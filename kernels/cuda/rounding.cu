#include "kernels/cuda/rounding.h"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

/// As BFloat16::from() does it.
__device__ BFloat16 rounded(float value) {
  const unsigned whole = static_cast<unsigned>(__float_as_int(value));
  if ((whole & 0x7fffffffu) > 0x7f800000u)
    return {static_cast<std::uint16_t>((whole >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((whole + 0x7fffu + ((whole >> 16) & 1u)) >> 16)};
}
__device__ float wide(BFloat16 number) {
  return __int_as_float(static_cast<int>(static_cast<unsigned>(number.bits) << 16));
}

struct Round {
  const float* x;
  BFloat16* y;
  __device__ void operator()(std::int64_t i) const { y[i] = rounded(x[i]); }
};

struct Widen {
  const BFloat16* x;
  float* y;
  __device__ void operator()(std::int64_t i) const { y[i] = wide(x[i]); }
};

struct AddWidened {
  const BFloat16* x;
  float* y;
  __device__ void operator()(std::int64_t i) const { y[i] += wide(x[i]); }
};

struct WidenRows {
  DeviceHeads<const BFloat16> x;
  float* y;
  std::int64_t columns;
  __device__ void operator()(std::int64_t i) const {
    y[i] = wide(x.data[i / columns * x.row + i % columns]);
  }
};

struct RoundRows {
  const float* x;
  DeviceHeads<BFloat16> y;
  std::int64_t columns;
  __device__ void operator()(std::int64_t i) const {
    y.data[i / columns * y.row + i % columns] = rounded(x[i]);
  }
};

constexpr std::int64_t rows_in_piece = 256;
constexpr int columns_in_block = 32;
constexpr int rows_at_once = threads_in_block / columns_in_block;

/// A block adds up a piece of the rows for some columns: each of its threads every eighth row.
__global__ void add_piece(const BFloat16* x, float* sums, std::int64_t rows, std::int64_t columns) {
  __shared__ float parts[rows_at_once][columns_in_block];
  const int x_in_block = static_cast<int>(threadIdx.x) % columns_in_block;
  const int y_in_block = static_cast<int>(threadIdx.x) / columns_in_block;
  const std::int64_t column = std::int64_t{blockIdx.x} * columns_in_block + x_in_block;
  const std::int64_t first = std::int64_t{blockIdx.y} * rows_in_piece;
  const std::int64_t end = lesser(rows, first + rows_in_piece);
  float sum = 0;
  if (column < columns)
    for (std::int64_t r = first + y_in_block; r < end; r += rows_at_once)
      sum += wide(x[r * columns + column]);
  parts[y_in_block][x_in_block] = sum;
  __syncthreads();
  if (y_in_block != 0 || column >= columns) return;
  for (int part = 1; part < rows_at_once; ++part) sum += parts[part][x_in_block];
  sums[blockIdx.y * columns + column] = sum;
}

struct AddPieces {
  const float* sums;
  float* to;
  std::int64_t pieces, columns;
  __device__ void operator()(std::int64_t column) const {
    float total = 0;
    for (std::int64_t piece = 0; piece < pieces; ++piece) total += sums[piece * columns + column];
    to[column] += total;
  }
};

}  // namespace

void round_to_bf16(Stream& stream, const float* x, BFloat16* y, std::int64_t count) {
  for_elements(stream, count, Round{x, y});
}
void widen_bf16(Stream& stream, const BFloat16* x, float* y, std::int64_t count) {
  for_elements(stream, count, Widen{x, y});
}
void add_widened(Stream& stream, const BFloat16* x, float* y, std::int64_t count) {
  for_elements(stream, count, AddWidened{x, y});
}
void widen_rows(Stream& stream, DeviceHeads<const BFloat16> x, float* y, std::int64_t rows,
                std::int64_t columns) {
  for_elements(stream, rows * columns, WidenRows{x, y, columns});
}
void round_rows(Stream& stream, const float* x, DeviceHeads<BFloat16> y, std::int64_t rows,
                std::int64_t columns) {
  for_elements(stream, rows * columns, RoundRows{x, y, columns});
}

void add_rounded_rows(Stream& stream, const BFloat16* dy, float* db, std::int64_t rows,
                      std::int64_t columns) {
  const auto pieces = blocks_for(rows, rows_in_piece).x;
  Tensor sums = stream.make({std::int64_t{pieces}, columns});
  launch(stream, dim3(blocks_for(columns, columns_in_block).x, pieces), dim3(threads_in_block),
         add_piece, dy, sums.f32(), rows, columns);
  for_elements(stream, columns, AddPieces{sums.f32(), db, std::int64_t{pieces}, columns});
}

}  // namespace troupe::kernels::cuda
