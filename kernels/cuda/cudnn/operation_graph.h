#pragma once

#include <vector>

#include "kernels/cuda/cudnn/descriptor.h"
#include "kernels/cuda/cudnn/graph.h"

namespace troupe::kernels::cudnn {

/// A graph in cuDNN's own terms.
class OperationGraph {
 public:
  /// Throws what cuDNN refuses, and at which tensor or operation.
  explicit OperationGraph(const Graph& graph);

  const Descriptor& descriptor() const { return graph_; }

 private:
  void add(const Operation& operation);
  const Descriptor& of(Term term) const;

  std::vector<Descriptor> operands_, settings_, operations_;
  Descriptor graph_;
};

}  // namespace troupe::kernels::cudnn
