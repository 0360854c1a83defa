#pragma once

#include <vector>

#include "kernels/cuda/cudnn/graph.h"

namespace troupe::kernels::cudnn {

/// What a graph says, computed one number at a time in fp32, whatever its elements are. `given` are
/// its inputs and numbers in their order, each as far as its strides reach; back come the tensors
/// that it writes to memory, in the order of its operations.
std::vector<std::vector<float>> interpret(const Graph& graph,
                                          std::vector<std::vector<float>> given);

}  // namespace troupe::kernels::cudnn
