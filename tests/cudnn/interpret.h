#pragma once

#include <cstddef>
#include <vector>

#include "kernels/cuda/cudnn/graph.h"

namespace troupe::kernels::cudnn {

/// Returns the number of elements from the first to the last of a tensor of rank 4.
std::size_t reach(const Layout& layout);

/// Interprets a graph element by element in fp32, and rounds values in bf16 or fp16. `given` holds
/// its inputs and scalars. Returns the tensors that it writes, in the graph's order, each as long
/// as its strides reach.
std::vector<std::vector<float>> interpret(const Graph& graph,
                                          std::vector<std::vector<float>> given);

}  // namespace troupe::kernels::cudnn
