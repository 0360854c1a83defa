#pragma once

#include <memory>

#include "core/memory/device.h"

namespace troupe::kernels {

/// Returns a device for a rehearsal. It computes nothing, but its kernels allocate from the
/// stream's memory what a GPU's kernels (kernels/cuda) and libraries allocate while they run. Its
/// host memory comes from `host` and has no real memory either.
std::unique_ptr<Device> rehearsed_device(std::unique_ptr<MemorySource> host);

}  // namespace troupe::kernels
