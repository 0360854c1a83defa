#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "core/memory_pool.h"
#include "kernels/cuda/graphs.h"
#include "kernels/cuda/work_list.h"

namespace troupe::kernels::cuda {

/// Where a GPU's work is given, in order. What is repeated waits for its end here, so that it can
/// be played as one.
class LaunchQueue {
 public:
  /// Throws where there is no memory for numbers. `host` is memory that the GPU can copy from.
  LaunchQueue(cudaStream_t queue, MemoryPool& host);
  ~LaunchQueue();
  LaunchQueue(const LaunchQueue&) = delete;
  LaunchQueue& operator=(const LaunchQueue&) = delete;

  template <class... Things>
  void give(WorkList::Give give, const Things&... things) {
    work_.add(give, things...);
    if (!is_repeated_) play();
  }
  /// A number that is another one each time: told as an argument, it would make other work of it.
  /// Gives the place on the GPU where it is for the work that is given next.
  template <class T>
  const T* number(const T& number) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignment);
    return static_cast<const T*>(place_number(&number, sizeof number));
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

  const void* place_number(const void* number, std::size_t bytes);
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
