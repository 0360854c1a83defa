#pragma once

#include <cuda_runtime.h>

#include "core/memory/stream.h"

namespace troupe::kernels::cuda {

class LaunchQueue;

/// Returns the queue of a stream's device, which is a CUDA device.
LaunchQueue& queue_of(const Stream& stream);

/// Throws an error with CUDA's message if the call failed.
void check(cudaError_t outcome);

/// Looks for code of a kernel that the current GPU can run. All kernels are compiled for the same
/// GPUs.
cudaError_t look_for_code();

}  // namespace troupe::kernels::cuda
