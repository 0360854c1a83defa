#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "kernels/cuda/device.h"
#include "kernels/cuda/machine/work_list.h"

namespace troupe::kernels::cuda {

/// A player of work lists on a queue. A list that comes a second time, with equal addresses and
/// numbers, is recorded as a CUDA graph and then needs one launch. A list with another address or
/// number is other work, so that a graph does what its list says whatever became of the memory.
class Graphs {
 public:
  /// Both streams outlive this object. Graphs are recorded on `recorder`, which never runs work,
  /// because other threads record events on `queue`, and these must not enter a graph.
  Graphs(cudaStream_t queue, cudaStream_t recorder) : queue_(queue), recorder_(recorder) {}
  /// The queue's work must be done.
  ~Graphs();
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  void play(const WorkList& work);
  const GraphCounts& counts() const { return counts_; }

 private:
  struct Graph {
    WorkList work;
    cudaGraphExec_t ready = nullptr;  // Null: CUDA refused to record it.
    std::uint64_t played = 0;         // The value of plays_ when it was last played.
  };

  bool came_before(std::uint64_t hash);
  cudaGraphExec_t record(const WorkList& work);
  void make_room();

  cudaStream_t queue_, recorder_;
  std::unordered_map<std::uint64_t, Graph> graphs_;  // Keyed by the hash of the work.
  std::deque<std::uint64_t> once_;                   // Hashes of the latest lists that came once.
  std::uint64_t plays_ = 0;
  GraphCounts counts_;
};

}  // namespace troupe::kernels::cuda
