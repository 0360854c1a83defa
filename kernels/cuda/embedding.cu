#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tile.cuh"
#include "kernels/embedding.h"

namespace troupe::kernels::cuda {
namespace {

struct Look {
  const float* table;
  const std::int32_t* tokens;
  float* y;
  std::int64_t columns;
  __device__ void operator()(std::int64_t i) const {
    y[i] = table[tokens[i / columns] * columns + i % columns];
  }
};

/// The rows of a batch, sorted by token and then by position. At the first row of a token, `uses`
/// holds the number of its rows; elsewhere 0.
struct Order {
  std::int32_t *rows, *uses;
};

/// A sort by counting: a row's position in that order is the number of rows before it, counted by
/// sixteen threads. That compares each pair of rows, but no thread waits for another.
struct Sort {
  const std::int32_t* tokens;
  Order order;
  std::int64_t count;

  __device__ void operator()(std::int64_t row, bool is_row, unsigned lane) const {
    const std::int32_t token = tokens[row];
    std::int32_t lesser_ones = 0, same_before = 0, same = 0;
#pragma unroll 8
    for (std::int64_t r = lane; r < count; r += lanes) {
      const std::int32_t other = tokens[r];
      lesser_ones += other < token;
      same_before += other == token && r < row;
      same += other == token;
    }
    lesser_ones = sum_of_lanes(lesser_ones);
    same_before = sum_of_lanes(same_before);
    same = sum_of_lanes(same);
    if (!is_row || lane != 0) return;
    order.rows[lesser_ones + same_before] = static_cast<std::int32_t>(row);
    order.uses[lesser_ones + same_before] = same_before == 0 ? same : 0;
  }
};

struct Uses {
  const std::int32_t* tokens;
  Order order;
  const float* dy;
  float* dtable;
  std::int64_t columns;
};

/// Runs one block per position in the order and group of columns. The block at a token's first row
/// adds up all rows of the token.
__global__ void add_uses(Uses all) {
  const std::int32_t uses = all.order.uses[blockIdx.x];
  const std::int64_t column = std::int64_t{blockIdx.y} * threads_in_block + threadIdx.x;
  if (uses == 0 || column >= all.columns) return;
  const std::int32_t* rows = all.order.rows + blockIdx.x;
  float* to = all.dtable + all.tokens[rows[0]] * all.columns + column;
  float sum = *to;
  // Only the additions are serial.
#pragma unroll 8
  for (std::int32_t i = 0; i < uses; ++i) sum += all.dy[rows[i] * all.columns + column];
  *to = sum;
}

}  // namespace

void embedding_forward(Stream& stream, const float* table, const std::int32_t* tokens, float* y,
                       std::int64_t rows, std::int64_t columns) {
  for_elements(stream, rows * columns, Look{table, tokens, y, columns});
}
void embedding_backward_weight(Stream& stream, const std::int32_t* tokens, const float* dy,
                               float* dtable, std::int64_t rows, std::int64_t columns) {
  Tensor there = stream.make({2, rows}, DType::i32);
  const Order order{there.data<std::int32_t>(), there.data<std::int32_t>() + rows};
  for_rows(stream, rows, Sort{tokens, order, rows});
  launch(stream, dim3(static_cast<unsigned>(rows), blocks_for(columns, threads_in_block).x),
         dim3(threads_in_block), add_uses, Uses{tokens, order, dy, dtable, columns});
}

}  // namespace troupe::kernels::cuda
