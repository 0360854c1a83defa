#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/result.h"
#include "kernels/cuda/cudnn/graph.h"
#include "kernels/cuda/machine/queue.h"

namespace troupe::kernels::cudnn {

/// A graph that is ready to run.
class ReadyGraph {
 public:
  virtual ~ReadyGraph() = default;
  virtual std::int64_t workspace() const = 0;  // Bytes.
  /// Gives it to a queue. Tensors are given and made in the graph's order; of a number it is the
  /// host's memory, which is read before this returns.
  virtual void run(std::span<const void* const> given, std::span<void* const> made, void* workspace,
                   cudaStream_t queue) const = 0;
};

/// Makes graphs ready for one GPU.
class GraphRunner {
 public:
  virtual ~GraphRunner() = default;
  /// An error where no engine takes the graph. Throws what went wrong. What it gives must not
  /// outlive the runner.
  virtual Result<std::unique_ptr<const ReadyGraph>> prepare(const Graph& graph) const = 0;
};

/// By cuDNN. An error where there is none, or no driver.
Result<std::unique_ptr<GraphRunner>> open_graph_runner();

}  // namespace troupe::kernels::cudnn
