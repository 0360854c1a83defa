#pragma once

#include <string>

#include "actors/play/linked_device.h"
#include "apps/gpu/gpu_links.h"
#include "core/result.h"

namespace troupe::apps {

/// Makes NCCL connect over the interface with this address, and log to stderr, since stdout belongs
/// to the program. Call it before any link is made, while the process has one thread.
/// NCCL_SOCKET_IFNAME and NCCL_DEBUG_FILE take precedence if the user has set them.
void link_by_interface(const std::string& address);

/// Adds NCCL links for a GPU that has none yet. The GPU outlives them. The error says why there are
/// none.
Status add_nccl_links(const GpuToLink& order, actors::LinkedDevice& linked);

}  // namespace troupe::apps
