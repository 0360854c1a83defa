#pragma once

#include <cuda_runtime.h>

#include "core/memory/stream.h"

namespace troupe::kernels::cuda {

class LaunchQueue;

/// Where a stream's kernels are queued. Its device is one of CUDA.
LaunchQueue& queue_of(const Stream& stream);

/// Throws what CUDA says went wrong.
void check(cudaError_t outcome);

}  // namespace troupe::kernels::cuda
