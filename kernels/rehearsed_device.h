#pragma once

#include <memory>

#include "core/memory/device.h"

namespace troupe::kernels {

/// A device for a rehearsal: it computes nothing, but its kernels take from the stream's memory
/// what those of a GPU take while they run (kernels/cuda), libraries included. What it has for the
/// host has no memory behind it either: `host`.
std::unique_ptr<Device> rehearsed_device(std::unique_ptr<MemorySource> host);

}  // namespace troupe::kernels
