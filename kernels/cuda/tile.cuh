// What the kernels for GPUs share. Each gives the bits of its twin in kernels/cpu: no operation is
// fused but where fmaf says so (-fmad=false), and sums are made in the same lanes and order.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "kernels/cuda/launch_queue.h"
#include "kernels/cuda/machine/queue.h"

namespace troupe::kernels::cuda {

constexpr unsigned threads_in_block = 256;
constexpr unsigned warp = 32;
/// Sums run in so many lanes: element i goes to lane i % 16.
constexpr unsigned lanes = 16;
constexpr unsigned lane_groups = threads_in_block / lanes;  // In a block.
constexpr std::int64_t most_blocks =
    4096;  // Those that walk in strides; others have the blocks they need.

inline dim3 blocks_for(std::int64_t pieces, std::int64_t in_block = 1) {
  return dim3(static_cast<unsigned>((pieces + in_block - 1) / in_block));
}

template <class... Parameters>
void give_kernel(WorkList::Told told, cudaStream_t queue) {
  const auto kernel = told.next<void (*)(Parameters...)>();
  cudaLaunchConfig_t config = {};
  config.gridDim = told.next<dim3>();
  config.blockDim = told.next<dim3>();
  config.stream = queue;
  // Braces: the first is read first.
  const std::tuple<Parameters...> arguments{told.next<Parameters>()...};
  std::apply(
      [&](const Parameters&... argument) {
        check(cudaLaunchKernelEx(&config, kernel, argument...));
      },
      arguments);
}

/// What differs each time that work is repeated goes to a kernel by LaunchQueue::changing().
template <class... Parameters, class... Arguments>
void launch(Stream& stream, dim3 blocks, dim3 threads, void (*kernel)(Parameters...),
            Arguments... arguments) {
  if (blocks.x == 0 || blocks.y == 0) return;
  queue_of(stream).give(give_kernel<Parameters...>, kernel, blocks, threads,
                        static_cast<Parameters>(arguments)...);
}

template <class Body>
__global__ void walk(std::int64_t count, Body body) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
    body(i);
}

/// Calls body(i) for each i below `count`.
template <class Body>
void for_elements(Stream& stream, std::int64_t count, const Body& body) {
  const std::int64_t blocks = (count + threads_in_block - 1) / threads_in_block;
  launch(stream, dim3(static_cast<unsigned>(std::min(blocks, most_blocks))), dim3(threads_in_block),
         walk<Body>, count, body);
}

/// Sixteen threads for each row. All of a group call body(row, lane) together; those of no row do
/// too, with a row beyond the last, since they take part in folds.
template <class Body>
__global__ void walk_rows(std::int64_t rows, Body body) {
  const std::int64_t row = std::int64_t{blockIdx.x} * lane_groups + threadIdx.x / lanes;
  body(row < rows ? row : rows - 1, row < rows, threadIdx.x % lanes);
}

/// Calls body(row, is_row, lane) by sixteen threads for each row. Where `is_row` is false the row
/// belongs to others, and nothing may be written.
template <class Body>
void for_rows(Stream& stream, std::int64_t rows, const Body& body) {
  if (rows == 0) return;
  launch(stream, blocks_for(rows, lane_groups), dim3(threads_in_block), walk_rows<Body>, rows,
         body);
}

/// The lanes of a group combined by a tree: 0 with 8, 1 with 9, ..., then 0 with 4, ... All of them
/// get the result.
template <class T, class Combine>
__device__ T fold(T value, Combine combine) {
  for (int half = lanes / 2; half > 0; half /= 2) {
    const T upper = __shfl_down_sync(0xffffffffu, value, half, lanes);
    value = combine(value, upper);
  }
  return __shfl_sync(0xffffffffu, value, 0, lanes);
}

__device__ inline std::int64_t lesser(std::int64_t a, std::int64_t b) { return b < a ? b : a; }

struct Add {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Greater {
  __device__ float operator()(float a, float b) const { return b > a ? b : a; }
};

template <class T>
__device__ T sum_of_lanes(T value) {
  return fold(value, Add());
}

}  // namespace troupe::kernels::cuda
