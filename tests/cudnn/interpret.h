#pragma once

#include <cstddef>
#include <vector>

#include "kernels/cuda/cudnn/graph.h"

namespace troupe::kernels::cudnn {

/// How many elements lie between the first and the last of a tensor of rank 4, both included.
std::size_t reach(const Layout& layout);

/// What a graph says, computed one number at a time in fp32; what is of bf16 or fp16 is rounded.
/// `given` are its inputs and numbers, back come the tensors that it makes in memory: in the
/// graph's order, each as far as its strides reach.
std::vector<std::vector<float>> interpret(const Graph& graph,
                                          std::vector<std::vector<float>> given);

}  // namespace troupe::kernels::cudnn
