#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "core/memory/memory_pool.h"
#include "kernels/cuda/graphs.h"
#include "kernels/cuda/machine/work_list.h"

namespace troupe::kernels::cuda {

/// The alignment of changing numbers in GPU memory.
constexpr std::size_t alignment_of_numbers = 16;

/// Kernel arguments whose values differ on each replay of a graph. In repeated work they lie in GPU
/// memory at `place`, since other argument values would make it other work. In other work they are
/// passed by value.
template <class T>
struct Changing {
  T value = {};
  const T* place = nullptr;

  __device__ T read() const {
    T numbers = value;
    if (place)
      numbers = *static_cast<const T*>(__builtin_assume_aligned(place, alignment_of_numbers));
    return numbers;
  }
};

/// A GPU's work in order. Repeated work is collected until its end, so that it can be played as one
/// graph.
class LaunchQueue {
 public:
  /// Throws if there is no memory for changing numbers. `recorder` serves Graphs; the GPU
  /// can copy from `host`.
  LaunchQueue(cudaStream_t queue, cudaStream_t recorder, MemoryPool& host);
  ~LaunchQueue();
  LaunchQueue(const LaunchQueue&) = delete;
  LaunchQueue& operator=(const LaunchQueue&) = delete;

  template <class... Things>
  void give(WorkList::Give give, const Things&... things) {
    work_.add(give, things...);
    if (!is_repeated_) play();
  }
  /// Passes changing numbers to the next kernel. Call it once for each kernel.
  template <class T>
  Changing<T> changing(const T& numbers) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignment_of_numbers);
    if (!is_repeated_) return {.value = numbers};
    return {.place = static_cast<const T*>(place_numbers(&numbers, sizeof numbers))};
  }
  /// Gives all collected work to CUDA's stream and returns that stream, for work that cannot wait.
  cudaStream_t native() {
    play();
    return queue_;
  }

  void begin_repeated();
  void end_repeated();
  void drop_repeated();

  const GraphCounts& counts() const { return graphs_.counts(); }

 private:
  const void* place_numbers(const void* numbers, std::size_t bytes);
  void play();
  void send_numbers();
  void clear();

  cudaStream_t queue_;
  MemoryPool& host_;
  WorkList work_;
  bool is_repeated_ = false;
  std::byte* numbers_ = nullptr;  // In GPU memory.
  BlockHandle written_;           // The numbers to be copied there; empty: none.
  std::size_t written_bytes_ = 0;
  Graphs graphs_;
};

}  // namespace troupe::kernels::cuda
