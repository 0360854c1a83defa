#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "core/memory/memory_pool.h"
#include "kernels/cuda/graphs.h"
#include "kernels/cuda/machine/work_list.h"

namespace troupe::kernels::cuda {

/// Numbers that are others each time that work comes again, as a kernel is told them: where they
/// lie on the GPU, since as arguments they would make other work of it. In work that is not
/// repeated they are arguments.
template <class T>
struct Changing {
  T value = {};
  const T* place = nullptr;

  __device__ T read() const {
    T numbers = value;
    if (place) numbers = *place;
    return numbers;
  }
};

/// Where a GPU's work is given, in order. What is repeated waits for its end here, so that it can
/// be played as one.
class LaunchQueue {
 public:
  /// Throws where there is no memory for numbers. `recorder` is as Graphs wants it, `host` memory
  /// that the GPU can copy from.
  LaunchQueue(cudaStream_t queue, cudaStream_t recorder, MemoryPool& host);
  ~LaunchQueue();
  LaunchQueue(const LaunchQueue&) = delete;
  LaunchQueue& operator=(const LaunchQueue&) = delete;

  template <class... Things>
  void give(WorkList::Give give, const Things&... things) {
    work_.add(give, things...);
    if (!is_repeated_) play();
  }
  /// For the kernel that is given next, once for each.
  template <class T>
  Changing<T> changing(const T& numbers) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignment);
    if (!is_repeated_) return {.value = numbers};
    return {.place = static_cast<const T*>(place_numbers(&numbers, sizeof numbers))};
  }
  /// CUDA's own queue, for what must not wait here: all that was given before is in it.
  cudaStream_t native() {
    play();
    return queue_;
  }

  void begin_repeated();
  void end_repeated();
  void drop_repeated();

  const GraphCounts& counts() const { return graphs_.counts(); }

 private:
  static constexpr std::size_t alignment = 16;

  const void* place_numbers(const void* numbers, std::size_t bytes);
  void play();
  void send_numbers();
  void clear();

  cudaStream_t queue_;
  MemoryPool& host_;
  WorkList work_;
  bool is_repeated_ = false;
  std::byte* numbers_ = nullptr;  // The GPU's.
  BlockHandle written_;           // What shall be there; empty: nothing.
  std::size_t written_bytes_ = 0;
  Graphs graphs_;
};

}  // namespace troupe::kernels::cuda
