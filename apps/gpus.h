#pragma once

#include <memory>

#include "core/device.h"
#include "core/memory_pool.h"
#include "core/result.h"

namespace troupe::apps {

/// The GPUs that this process can use; an error says why there are none.
Result<int> count_gpus();

// For a run that uses them.

/// Comes before all else.
void prepare_for_gpus();
/// An error where so many devices on one GPU would hold one another up.
Status check_gpu_queues(int devices);

Result<std::unique_ptr<Device>> open_gpu(int number);
/// That GPUs and host both see.
std::unique_ptr<MemorySource> gpu_memory();

}  // namespace troupe::apps
