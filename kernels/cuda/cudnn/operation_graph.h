#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/cudnn/gpu.h"
#include "kernels/cuda/cudnn/graph.h"

namespace troupe::kernels::cudnn {

/// A graph in cuDNN's own terms.
class OperationGraph {
 public:
  /// Throws what cuDNN refuses, and at which tensor or operation.
  OperationGraph(const Graph& graph, const Gpu& gpu);

  const Descriptor& descriptor() const { return graph_; }
  /// By what number cuDNN knows a tensor.
  static std::int64_t number_of(Term term) { return term.number + 1; }

 private:
  void add(const Operation& operation);
  const Descriptor& of(Term term) const;

  std::vector<Descriptor> operands_, settings_, operations_;
  Descriptor graph_;
};

}  // namespace troupe::kernels::cudnn
