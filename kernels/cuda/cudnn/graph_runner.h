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
  virtual std::int64_t workspace() const = 0;  // In bytes.
  /// Enqueues the graph. `given` and `made` have the graph's order. For a number, `given` holds a
  /// host address, which is read before this returns.
  virtual void run(std::span<const void* const> given, std::span<void* const> made, void* workspace,
                   cudaStream_t queue) const = 0;
};

/// A factory of graphs that are ready to run on one GPU.
class GraphRunner {
 public:
  virtual ~GraphRunner() = default;
  /// Returns an error if no engine takes the graph; throws other errors. The result must not
  /// outlive the runner.
  virtual Result<std::unique_ptr<const ReadyGraph>> prepare(const Graph& graph) const = 0;
};

/// Returns a runner that uses cuDNN, or an error if there is no cuDNN or no driver.
Result<std::unique_ptr<GraphRunner>> open_graph_runner();

}  // namespace troupe::kernels::cudnn
