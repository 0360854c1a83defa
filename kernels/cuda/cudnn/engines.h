#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "kernels/cuda/cudnn/gpu.h"
#include "kernels/cuda/cudnn/graph.h"

namespace troupe::kernels::cudnn {

/// The numbers of cuDNN's engines that take a graph on a GPU, the one it believes fastest first; a
/// number comes again for each way in which its engine can be set. Where none takes it the error
/// says why, engine by engine. No kernel is made: it takes some hundredths of a second.
Result<std::vector<std::int64_t>> engines_for(const Graph& graph, const Gpu& gpu);

struct Plan {
  std::int64_t engine = 0;
  std::int64_t workspace = 0;  // Bytes.
};

/// What the first of them needs. Its kernels are made and given to the driver, some tenths of a
/// second: an error where there is none, save for engines whose kernels cuDNN has ready.
Result<Plan> plan_for(const Graph& graph, const Gpu& gpu);

}  // namespace troupe::kernels::cudnn
