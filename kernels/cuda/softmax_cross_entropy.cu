#include "kernels/cuda/between_layers.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

// As in kernels/cpu/softmax_cross_entropy.cpp, the terms of a chunk are relative to its greatest
// number, and each chunk is summed in lanes.
constexpr int most_chunks = 64;
constexpr std::int64_t least_chunk = 4096;

template <class Number>
struct Row {
  const Number* logits;
  const std::int32_t* targets;
  float* losses;
  Number* dlogits;
  std::int64_t classes, chunk;
  Changing<float> scale;
};

/// Computes one row per block, with sixteen threads per chunk. Computes the terms again for the
/// gradient, so that nothing is stored or rounded in between.
template <class Number>
__global__ void softmax_row(Row<Number> all) {
  __shared__ float shifts[most_chunks];
  __shared__ float sums[most_chunks];
  __shared__ float factors[most_chunks];
  const std::int64_t row = blockIdx.x;
  const Number* logits = all.logits + row * all.classes;
  const std::int64_t target = all.targets[row];
  const float target_logit = wide(logits[target]);
  const int chunks = static_cast<int>((all.classes + all.chunk - 1) / all.chunk);
  const unsigned lane = threadIdx.x % lanes;
  const float scale = all.scale.read();
  const float infinity = __int_as_float(0x7f800000);
  __syncthreads();  // All threads must read the target's logit before it is overwritten.

  // All groups loop equally often, because they take part in folds.
  for (int begin = 0; begin < chunks; begin += static_cast<int>(lane_groups)) {
    const int mine = begin + static_cast<int>(threadIdx.x / lanes);
    const std::int64_t first = mine * all.chunk;
    const std::int64_t end = mine < chunks ? std::min(first + all.chunk, all.classes) : first;
    float most = -infinity;
#pragma unroll 8
    for (std::int64_t i = first + lane; i < end; i += lanes)
      most = Greater()(most, wide(logits[i]));
    most = fold(most, Greater());
    const float shift = most == -infinity ? -0x1.fffffep+127f : most;
    float sum = 0;
#pragma unroll 4
    for (std::int64_t i = first + lane; i < end; i += lanes)
      sum += exp_nonpositive(wide(logits[i]) + -shift);
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
  if (!all.dlogits) return;
  Number* dlogits = all.dlogits + row * all.classes;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const float minus_shift = -shifts[chunk], factor = factors[chunk];
    const std::int64_t first = chunk * all.chunk, end = std::min(first + all.chunk, all.classes);
    for (std::int64_t i = first + threadIdx.x; i < end; i += threads_in_block) {
      const float softmax = exp_nonpositive(wide(logits[i]) + minus_shift) * factor;
      dlogits[i] = narrow<Number>(i == target ? softmax - scale : softmax);
    }
  }
}

}  // namespace

template <class Number>
void softmax_cross_entropy(Stream& stream, const Number* logits, const std::int32_t* targets,
                           float* losses, Number* dlogits, std::int64_t rows, std::int64_t classes,
                           float scale) {
  const std::int64_t chunk = std::max(least_chunk, (classes + most_chunks - 1) / most_chunks);
  launch(stream, blocks_for(rows), dim3(threads_in_block), softmax_row<Number>,
         Row<Number>{logits, targets, losses, dlogits, classes, chunk,
                     queue_of(stream).changing(scale)});
}

template void softmax_cross_entropy(Stream&, const float*, const std::int32_t*, float*, float*,
                                    std::int64_t, std::int64_t, float);
template void softmax_cross_entropy(Stream&, const Float16*, const std::int32_t*, float*, Float16*,
                                    std::int64_t, std::int64_t, float);
template void softmax_cross_entropy(Stream&, const BFloat16*, const std::int32_t*, float*,
                                    BFloat16*, std::int64_t, std::int64_t, float);

}  // namespace troupe::kernels::cuda
