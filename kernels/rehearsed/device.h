#pragma once

#include <memory>
#include <vector>

#include "core/memory/device.h"
#include "kernels/rehearsed/kernel_call.h"

namespace troupe::kernels {

/// Returns a device for a rehearsal. It computes nothing, but its kernels allocate from the
/// stream's memory what a GPU's kernels (kernels/cuda) and libraries allocate while they run. Its
/// host memory comes from `host` and has no real memory either. Each call of a kernel is appended
/// to `calls`, unless that is null. Copies between host and device are not appended.
std::unique_ptr<Device> rehearsed_device(std::unique_ptr<MemorySource> host,
                                         std::vector<KernelCall>* calls);

}  // namespace troupe::kernels
