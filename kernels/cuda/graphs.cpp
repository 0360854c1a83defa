#include "kernels/cuda/graphs.h"

#include <algorithm>
#include <exception>

#include "kernels/cuda/machine/queue.h"

namespace troupe::kernels::cuda {
namespace {

// Enough for some passes per micro-batch in flight and version of the weights.
constexpr std::size_t most_graphs = 256;
constexpr std::size_t most_once = 1024;

}  // namespace

Graphs::~Graphs() {
  for (const auto& [hash, graph] : graphs_)
    if (graph.ready) (void)cudaGraphExecDestroy(graph.ready);
}

bool Graphs::came_before(std::uint64_t hash) {
  const auto found = std::ranges::find(once_, hash);
  if (found == once_.end()) {
    if (once_.size() == most_once) once_.pop_front();
    once_.push_back(hash);
    return false;
  }
  once_.erase(found);
  return true;
}

void Graphs::play(const WorkList& work) {
  const auto hash = work.hash();
  auto found = graphs_.find(hash);
  if (found == graphs_.end() && came_before(hash)) {
    make_room();
    found = graphs_.emplace(hash, Graph{.work = work, .ready = record(work)}).first;
  }
  if (found == graphs_.end() || !found->second.ready || found->second.work != work) {
    ++counts_.plain;
    return work.give_to(queue_);
  }
  found->second.played = ++plays_;
  ++counts_.played;
  check(cudaGraphLaunch(found->second.ready, queue_));
}

/// Returns null if CUDA refuses something in the list. The list is then played kernel by kernel,
/// which reports any real error.
cudaGraphExec_t Graphs::record(const WorkList& work) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  bool recorded = true;
  check(cudaStreamBeginCapture(recorder_, cudaStreamCaptureModeThreadLocal));
  try {
    work.give_to(recorder_);
  } catch (const std::exception&) {
    recorded = false;
  }
  recorded = cudaStreamEndCapture(recorder_, &graph) == cudaSuccess && recorded;
  recorded = recorded && cudaGraphInstantiate(&ready, graph, 0) == cudaSuccess;
  if (graph) (void)cudaGraphDestroy(graph);
  if (!recorded) (void)cudaGetLastError();  // Clears the handled error.
  ++(recorded ? counts_.recorded : counts_.refused);
  return recorded ? ready : nullptr;
}

/// Removes the graph that was not played for the longest time, once the queue is done.
void Graphs::make_room() {
  if (graphs_.size() < most_graphs) return;
  const auto oldest =
      std::ranges::min_element(graphs_, {}, [](const auto& entry) { return entry.second.played; });
  check(cudaStreamSynchronize(queue_));
  if (oldest->second.ready) (void)cudaGraphExecDestroy(oldest->second.ready);
  graphs_.erase(oldest);
}

}  // namespace troupe::kernels::cuda
