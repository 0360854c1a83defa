#include "kernels/cuda/kernels.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/tile.cuh"
#include "kernels/softmax_cross_entropy.h"

namespace troupe::kernels::cuda {
namespace {

// As in kernels/cpu/softmax_cross_entropy.cpp: the terms of a chunk are relative to the greatest
// number of that chunk, and its sum is one of lanes.
constexpr int most_chunks = 64;
constexpr std::int64_t least_chunk = 4096;

struct Row {
  const float* logits;
  const std::int32_t* targets;
  float *losses, *dlogits;
  std::int64_t classes, chunk;
  Changing<float> scale;
};

/// A block for each row, and in it sixteen threads for each chunk.
__global__ void softmax_row(Row all) {
  __shared__ float shifts[most_chunks];
  __shared__ float sums[most_chunks];
  __shared__ float factors[most_chunks];
  const std::int64_t row = blockIdx.x;
  const float* logits = all.logits + row * all.classes;
  float* dlogits = all.dlogits ? all.dlogits + row * all.classes : nullptr;
  const std::int64_t target = all.targets[row];
  const float target_logit = logits[target];
  const int chunks = static_cast<int>((all.classes + all.chunk - 1) / all.chunk);
  const unsigned lane = threadIdx.x % lanes;
  const float scale = all.scale.read();
  const float infinity = __int_as_float(0x7f800000);
  __syncthreads();  // Nobody overwrites it before all have read it.

  // All groups walk equally often, since they take part in folds.
  for (int begin = 0; begin < chunks; begin += static_cast<int>(lane_groups)) {
    const int mine = begin + static_cast<int>(threadIdx.x / lanes);
    const std::int64_t first = mine * all.chunk;
    const std::int64_t end = mine < chunks ? std::min(first + all.chunk, all.classes) : first;
    float most = -infinity;
    for (std::int64_t i = first + lane; i < end; i += lanes) most = Greater()(most, logits[i]);
    most = fold(most, Greater());
    const float shift = most == -infinity ? -0x1.fffffep+127f : most;
    float sum = 0;
    for (std::int64_t i = first + lane; i < end; i += lanes) {
      const float term = exp_nonpositive(logits[i] + -shift);
      sum += term;
      if (dlogits) dlogits[i] = term;
    }
    sum = sum_of_lanes(sum);
    if (lane == 0 && mine < chunks) {
      shifts[mine] = shift;
      sums[mine] = sum;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float shift = -infinity, sum = 0;
    for (int i = 0; i < chunks; ++i) {
      if (shifts[i] > shift) {
        sum *= exp_of(shift - shifts[i]);
        shift = shifts[i];
      }
      sum += sums[i] * exp_of(shifts[i] - shift);
    }
    all.losses[row] = log_of(sum) + (shift - target_logit);
    for (int i = 0; i < chunks; ++i) factors[i] = exp_of(shifts[i] - shift) / sum * scale;
  }
  __syncthreads();
  if (!dlogits) return;
  for (std::int64_t i = threadIdx.x; i < all.classes; i += threads_in_block) {
    const float softmax = dlogits[i] * factors[i / all.chunk];
    dlogits[i] = i == target ? softmax - scale : softmax;
  }
}

}  // namespace

void softmax_cross_entropy(Stream& stream, const float* logits, const std::int32_t* targets,
                           float* losses, float* dlogits, std::int64_t rows, std::int64_t classes,
                           float scale) {
  const std::int64_t chunk = std::max(least_chunk, (classes + most_chunks - 1) / most_chunks);
  launch(stream, blocks_for(rows), dim3(threads_in_block), softmax_row,
         Row{logits, targets, losses, dlogits, classes, chunk, queue_of(stream).changing(scale)});
}

}  // namespace troupe::kernels::cuda
