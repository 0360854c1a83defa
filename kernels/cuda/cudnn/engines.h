#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "kernels/cuda/cudnn/gpu.h"
#include "kernels/cuda/cudnn/graph.h"
#include "kernels/cuda/cudnn/operation_graph.h"

namespace troupe::kernels::cudnn {

/// The numbers of cuDNN's engines that take a graph on a GPU and give the same bits each time, of
/// sums in fp32, the one it believes fastest first; a number comes again for each way in which its
/// engine can be set. Where none takes it the error says why, engine by engine. No kernel is made:
/// it takes some hundredths of a second.
Result<std::vector<std::int64_t>> engines_for(const Graph& graph, const Gpu& gpu);

/// A graph that is ready to run.
class Plan {
 public:
  /// By the first of those engines that can indeed. Its kernels are made and given to the driver,
  /// some tenths of a second. Throws NotSupported where there is none, with the reason of the
  /// first; and what went wrong.
  static Plan make(const Graph& graph, const Gpu& gpu);

  std::int64_t engine() const { return engine_; }
  std::int64_t workspace() const { return workspace_; }  // Bytes.

  /// Gives it to a queue of the GPU that it was made for. Tensors are given and made in the graph's
  /// order; of a number it is the host's memory, which is read before this returns.
  void run(const Gpu& gpu, std::span<const void* const> given, std::span<void* const> made,
           void* workspace, cudaStream_t queue) const;

 private:
  Plan(OperationGraph operations, Descriptor way, Descriptor plan);

  // What a descriptor was made of outlives it.
  OperationGraph operations_;
  Descriptor way_, plan_;
  std::int64_t engine_ = 0;
  std::int64_t workspace_ = 0;
  std::vector<std::int64_t> given_, made_;  // By cuDNN's numbers.
};

/// Plan::make() with the reason as an error: one where there is no driver, save for engines whose
/// kernels cuDNN has ready.
Result<Plan> plan_for(const Graph& graph, const Gpu& gpu);

}  // namespace troupe::kernels::cudnn
