#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "kernels/cuda/device.h"
#include "kernels/cuda/machine/work_list.h"

namespace troupe::kernels::cuda {

/// Gives lists of work to a queue. One that comes for the second time, with all its addresses and
/// numbers, is recorded as a CUDA graph; from then on it is one launch. Another address or number
/// makes another list: so a graph does what its list says, whatever became of the memory.
class Graphs {
 public:
  /// Of one queue. In `recorder` nothing is ever done: any thread may mark the other one, by an
  /// event that must not come into a graph. Both outlive it.
  Graphs(cudaStream_t queue, cudaStream_t recorder) : queue_(queue), recorder_(recorder) {}
  /// All work must be done.
  ~Graphs();
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  void play(const WorkList& work);
  const GraphCounts& counts() const { return counts_; }

 private:
  struct Graph {
    WorkList work;
    cudaGraphExec_t ready = nullptr;  // Null: CUDA would not record it.
    std::uint64_t played = 0;         // When it was played last, as counts_ counts.
  };

  bool came_before(std::uint64_t hash);
  cudaGraphExec_t record(const WorkList& work);
  void make_room();

  cudaStream_t queue_, recorder_;
  std::unordered_map<std::uint64_t, Graph> graphs_;  // By the hash of their work.
  std::deque<std::uint64_t> once_;                   // Hashes of what came once, the last ones.
  std::uint64_t plays_ = 0;
  GraphCounts counts_;
};

}  // namespace troupe::kernels::cuda
