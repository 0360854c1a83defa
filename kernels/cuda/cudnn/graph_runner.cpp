#include "kernels/cuda/cudnn/graph_runner.h"

#include <utility>

#include "kernels/cuda/cudnn/engines.h"

namespace troupe::kernels::cudnn {
namespace {

class PlannedGraph final : public ReadyGraph {
 public:
  PlannedGraph(const Gpu& gpu, Plan plan) : gpu_(gpu), plan_(std::move(plan)) {}
  std::int64_t workspace() const override { return plan_.workspace(); }
  void run(std::span<const void* const> given, std::span<void* const> made, void* workspace,
           cudaStream_t queue) const override {
    plan_.run(gpu_, given, made, workspace, queue);
  }

 private:
  const Gpu& gpu_;
  Plan plan_;
};

class CudnnRunner final : public GraphRunner {
 public:
  explicit CudnnRunner(Gpu gpu) : gpu_(std::move(gpu)) {}
  Result<std::unique_ptr<const ReadyGraph>> prepare(const Graph& graph) const override {
    try {
      return std::unique_ptr<const ReadyGraph>(
          std::make_unique<const PlannedGraph>(gpu_, Plan::make(graph, gpu_)));
    } catch (const NotSupported& refusal) {
      return Error{refusal.what()};
    }
  }

 private:
  Gpu gpu_;
};

}  // namespace

Result<std::unique_ptr<GraphRunner>> open_graph_runner() {
  auto gpu = Gpu::here();
  if (!gpu) return gpu.error();
  return std::unique_ptr<GraphRunner>(std::make_unique<CudnnRunner>(std::move(*gpu)));
}

}  // namespace troupe::kernels::cudnn
