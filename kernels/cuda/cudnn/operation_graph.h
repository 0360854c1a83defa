#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/cudnn/gpu.h"
#include "kernels/cuda/cudnn/graph.h"

namespace troupe::kernels::cudnn {

/// A graph as cuDNN descriptors.
class OperationGraph {
 public:
  /// Throws if cuDNN refuses a tensor or an operation, and says which one.
  OperationGraph(const Graph& graph, const Gpu& gpu);

  const Descriptor& descriptor() const { return graph_; }
  /// Returns the number by which cuDNN knows a tensor.
  static std::int64_t number_of(Term term) { return term.number + 1; }

 private:
  void add(const Operation& operation);
  const Descriptor& of(Term term) const;

  std::vector<Descriptor> operands_, settings_, operations_;
  Descriptor graph_;
};

}  // namespace troupe::kernels::cudnn
