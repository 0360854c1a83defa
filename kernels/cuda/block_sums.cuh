// Sums over blocks of many tensors with one launch, in the order of kernels/steps.h.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cuda/tile.cuh"
#include "kernels/steps.h"

namespace troupe::kernels::cuda {

/// The most tensors of a launch. Kernel arguments are limited to 4 KiB.
constexpr int most_summed = 128;
/// Few threads, so that the blocks of sums spread over all multiprocessors.
constexpr unsigned threads_of_sums = 64;
constexpr unsigned sums_in_block = threads_of_sums / lanes;

/// A tensor whose first block of sums is `first_block` of the launch.
struct Summed {
  const float* x;
  std::int64_t count, first_block;
};
struct SummedTensors {
  Summed tensors[most_summed];
  std::int64_t count, blocks;

  /// Returns the tensor that holds the block.
  __device__ const Summed& holder(std::int64_t block) const {
    int at = 0;
    for (int step = most_summed / 2; step > 0; step /= 2)
      if (at + step < count && tensors[at + step].first_block <= block) at += step;
    return tensors[at];
  }
};

/// The numbers of a lane that are loaded together.
constexpr int loads_at_once = 32;

struct LaneLoads {
  float numbers[loads_at_once];

  __device__ void load(const float* x) {
#pragma unroll
    for (int k = 0; k < loads_at_once; ++k) numbers[k] = x[k * lanes];
  }
  template <class Add>
  __device__ void give_to(Add& add) const {
#pragma unroll
    for (int k = 0; k < loads_at_once; ++k) add(numbers[k]);
  }
};

/// Calls add(x[i]) for each i = lane, lane + 16, ... below `count`, in order. Few threads must keep
/// all of the memory busy, so many loads of a thread are under way at once. The compiler would mix
/// loads and additions until 5 loads are left, but it cannot delay loads to the next turn of a
/// loop.
template <class Add>
__device__ void add_in_lane(const float* x, std::int64_t count, unsigned lane, Add& add) {
  constexpr std::int64_t numbers_at_once = std::int64_t{loads_at_once} * lanes;
  const float* end = x + count;
  x += lane;
  if (const std::int64_t turns = count / numbers_at_once; turns > 0) {
    LaneLoads now;
    now.load(x);
    x += numbers_at_once;
    for (std::int64_t turn = 1; turn < turns; ++turn) {
      LaneLoads next;
      next.load(x);
      now.give_to(add);
      now = next;
      x += numbers_at_once;
    }
    now.give_to(add);
  }
#pragma unroll 8
  for (; x < end; x += lanes) add(*x);
}

/// Sums each block with sixteen threads. `Sum` adds a lane's numbers and folds the lanes.
template <class Sum>
__global__ void sum_blocks(SummedTensors all, typename Sum::Result* sums) {
  const std::int64_t wanted = std::int64_t{blockIdx.x} * sums_in_block + threadIdx.x / lanes;
  // Groups without a block of sums take part in folds.
  const std::int64_t block = lesser(wanted, all.blocks - 1);
  const Summed tensor = all.holder(block);
  const std::int64_t first = (block - tensor.first_block) * block_of_sums;
  const unsigned lane = threadIdx.x % lanes;
  Sum sum;
  add_in_lane(tensor.x + first, lesser(block_of_sums, tensor.count - first), lane, sum);
  const auto result = sum.of_lanes();
  if (wanted == block && lane == 0) sums[block] = result;
}

/// Sums all blocks of all tensors, in order. A launch serves up to `most_summed` tensors.
template <class Sum>
void sum_all_blocks(Stream& stream, std::span<const std::span<const float>> tensors,
                    typename Sum::Result* sums) {
  SummedTensors all = {};
  const auto give = [&] {
    if (all.blocks == 0) return;
    launch(stream, blocks_for(all.blocks, sums_in_block), dim3(threads_of_sums), sum_blocks<Sum>,
           all, sums);
    sums += all.blocks;
    all = {};
  };
  for (const auto tensor : tensors) {
    if (tensor.empty()) continue;
    if (all.count == most_summed) give();
    const auto count = static_cast<std::int64_t>(tensor.size());
    all.tensors[all.count++] = {tensor.data(), count, all.blocks};
    all.blocks += blocks_of_sums(count);
  }
  give();
}

}  // namespace troupe::kernels::cuda
