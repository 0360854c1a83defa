#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "kernels/cuda/cudnn/gpu.h"
#include "kernels/cuda/cudnn/graph.h"
#include "kernels/cuda/cudnn/operation_graph.h"

namespace troupe::kernels::cudnn {

/// Returns the numbers of cuDNN's engines that take a graph on a GPU, give equal bits each time and
/// sum in fp32. cuDNN's favourite comes first; an engine occurs once per configuration. If there is
/// none, the error says why, engine by engine. Compiles no kernel; takes some hundredths of a
/// second.
Result<std::vector<std::int64_t>> engines_for(const Graph& graph, const Gpu& gpu);

/// A graph that is ready to run.
class Plan {
 public:
  /// Uses the first engine that works. Compiles and loads its kernels, in some tenths of
  /// a second. Throws NotSupported with the first engine's reason if none works, or another
  /// exception for an error.
  static Plan make(const Graph& graph, const Gpu& gpu);

  std::int64_t engine() const { return engine_; }
  std::int64_t workspace() const { return workspace_; }  // In bytes.

  /// Enqueues the graph on a queue of its GPU. `given` and `made` have the graph's order. For a
  /// number, `given` holds a host address, which is read before this returns.
  void run(const Gpu& gpu, std::span<const void* const> given, std::span<void* const> made,
           void* workspace, cudaStream_t queue) const;

 private:
  Plan(OperationGraph operations, Descriptor way, Descriptor plan);

  // The parts of a descriptor must outlive it.
  OperationGraph operations_;
  Descriptor way_, plan_;
  std::int64_t engine_ = 0;
  std::int64_t workspace_ = 0;
  std::vector<std::int64_t> given_, made_;  // Numbers of cuDNN's tensors.
};

/// Calls Plan::make() and returns its exception as an error. Without a driver only engines with
/// precompiled kernels work.
Result<Plan> plan_for(const Graph& graph, const Gpu& gpu);

}  // namespace troupe::kernels::cudnn
