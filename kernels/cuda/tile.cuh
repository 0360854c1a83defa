// Code shared by the GPU kernels. Each kernel gives the bits of its counterpart in kernels/cpu:
// only fmaf fuses (-fmad=false), and sums use the same lanes and order.
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
/// The lanes of a sum: element i goes to lane i % 16.
constexpr unsigned lanes = 16;
constexpr unsigned lane_groups = threads_in_block / lanes;  // Per block.
constexpr std::int64_t most_blocks =
    4096;  // For kernels that walk in strides; other kernels use as many blocks as they need.

/// The dynamic shared memory that each kernel may use.
constexpr std::size_t usual_shared_bytes = 48 << 10;

/// Returns a limit of this thread's GPU.
inline int limit_of_gpu(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

inline dim3 blocks_for(std::int64_t pieces, std::int64_t in_block = 1) {
  return dim3(static_cast<unsigned>((pieces + in_block - 1) / in_block));
}

template <class... Parameters>
void give_kernel(WorkList::Told told, cudaStream_t queue) {
  const auto kernel = told.next<void (*)(Parameters...)>();
  cudaLaunchConfig_t config = {};
  config.gridDim = told.next<dim3>();
  config.blockDim = told.next<dim3>();
  config.dynamicSmemBytes = told.next<std::size_t>();
  config.stream = queue;
  // A kernel may use more than the usual limit only on request.
  if (config.dynamicSmemBytes > usual_shared_bytes)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(config.dynamicSmemBytes)));
  // Braces guarantee that the arguments are read in order.
  const std::tuple<Parameters...> arguments{told.next<Parameters>()...};
  std::apply(
      [&](const Parameters&... argument) {
        check(cudaLaunchKernelEx(&config, kernel, argument...));
      },
      arguments);
}

/// Enqueues a kernel whose blocks have `shared_bytes` of dynamic shared memory. Arguments that
/// change between repetitions go by LaunchQueue::changing().
template <class... Parameters, class... Arguments>
void launch_with_shared(Stream& stream, dim3 blocks, dim3 threads, std::size_t shared_bytes,
                        void (*kernel)(Parameters...), Arguments... arguments) {
  if (blocks.x == 0 || blocks.y == 0) return;
  queue_of(stream).give(give_kernel<Parameters...>, kernel, blocks, threads, shared_bytes,
                        static_cast<Parameters>(arguments)...);
}

/// Enqueues a kernel without dynamic shared memory.
template <class... Parameters, class... Arguments>
void launch(Stream& stream, dim3 blocks, dim3 threads, void (*kernel)(Parameters...),
            Arguments... arguments) {
  launch_with_shared(stream, blocks, threads, 0, kernel, arguments...);
}

/// Returns the block's dynamic shared memory.
__device__ inline float4* dynamic_shared() {
#ifdef __CUDACC__
  extern __shared__ float4 memory[];
  return memory;
#else
  return static_cast<float4*>(cuda_on_cores::dynamic_shared());
#endif
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

template <int n, class Body>
__global__ void walk_packs(std::int64_t packs, std::int64_t count, Body body) {
  const std::int64_t turns = packs + (count - packs * n);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < turns; i += stride)
    if (i < packs)
      body.template at<n>(i * n);
    else
      body.template at<1>(i + packs * (n - 1));
}

/// Calls body.at<n>(i) for each pack of n elements below `count`, and body.at<1>(i) for each of the
/// last elements. Calls body.at<1>(i) for all elements unless their packs are aligned.
template <int n, class Body>
void for_packs(Stream& stream, std::int64_t count, bool is_aligned, const Body& body) {
  const std::int64_t packs = is_aligned ? count / n : 0;
  const std::int64_t turns = packs + (count - packs * n);
  const std::int64_t blocks = (turns + threads_in_block - 1) / threads_in_block;
  launch(stream, dim3(static_cast<unsigned>(std::min(blocks, most_blocks))), dim3(threads_in_block),
         walk_packs<n, Body>, packs, count, body);
}

/// Calls body with sixteen threads for each row. Groups without a row call it too, with the last
/// row, because all threads of a warp take part in folds.
template <class Body>
__global__ void walk_rows(std::int64_t rows, Body body) {
  const std::int64_t row = std::int64_t{blockIdx.x} * lane_groups + threadIdx.x / lanes;
  body(row < rows ? row : rows - 1, row < rows, threadIdx.x % lanes);
}

/// Calls body(row, is_row, lane) with sixteen threads for each row. If `is_row` is false, another
/// group owns the row and the body must not write.
template <class Body>
void for_rows(Stream& stream, std::int64_t rows, const Body& body) {
  if (rows == 0) return;
  launch(stream, blocks_for(rows, lane_groups), dim3(threads_in_block), walk_rows<Body>, rows,
         body);
}

/// Combines the lanes of a group by a tree: 0 with 8, 1 with 9, ..., then 0 with 4, ... Returns the
/// result in all lanes.
template <class T, class Combine>
__device__ T fold(T value, Combine combine) {
  for (int half = lanes / 2; half > 0; half /= 2) {
    const T upper = __shfl_down_sync(0xffffffffu, value, half, lanes);
    value = combine(value, upper);
  }
  return __shfl_sync(0xffffffffu, value, 0, lanes);
}

__device__ inline std::int64_t lesser(std::int64_t a, std::int64_t b) { return b < a ? b : a; }
__device__ inline std::int64_t greater(std::int64_t a, std::int64_t b) { return b > a ? b : a; }

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
