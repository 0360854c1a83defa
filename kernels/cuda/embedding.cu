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

struct Uses {
  const std::int32_t* tokens;
  const float* dy;
  float* dtable;
  std::int64_t rows, columns;
};

/// A block for each row. That of a token's first row adds up all rows of the token, in their order.
__global__ void add_uses(Uses uses) {
  const std::int64_t row = blockIdx.x;
  const std::int32_t token = uses.tokens[row];
  int came_before = 0;
  for (std::int64_t r = threadIdx.x; r < row; r += threads_in_block)
    if (uses.tokens[r] == token) came_before = 1;
  if (__syncthreads_or(came_before)) return;
  for (std::int64_t c = threadIdx.x; c < uses.columns; c += threads_in_block) {
    float sum = uses.dtable[token * uses.columns + c];
    for (std::int64_t r = row; r < uses.rows; ++r)
      if (uses.tokens[r] == token) sum += uses.dy[r * uses.columns + c];
    uses.dtable[token * uses.columns + c] = sum;
  }
}

}  // namespace

void embedding_forward(Stream& stream, const float* table, const std::int32_t* tokens, float* y,
                       std::int64_t rows, std::int64_t columns) {
  for_elements(stream, rows * columns, Look{table, tokens, y, columns});
}
void embedding_backward_weight(Stream& stream, const std::int32_t* tokens, const float* dy,
                               float* dtable, std::int64_t rows, std::int64_t columns) {
  launch(stream, blocks_for(rows), dim3(threads_in_block), add_uses,
         Uses{tokens, dy, dtable, rows, columns});
}

}  // namespace troupe::kernels::cuda
