#pragma once

#include <string>

#include "actors/play/linked_device.h"
#include "core/memory/device.h"
#include "core/result.h"

namespace troupe::apps {

/// By which of a machine's interfaces links to other machines are made: the one with this address.
/// And what NCCL has to say it says to stderr: stdout is the program's. Before any link is wanted,
/// while the process has one thread. A person's own choice (NCCL_SOCKET_IFNAME, NCCL_DEBUG_FILE)
/// stands.
void link_by_interface(const std::string& address);

/// Links by NCCL for the GPU of this number, of which it has none yet. It outlives them. An error
/// says why there are none.
Status add_nccl_links(int number, Device& gpu, actors::LinkedDevice& linked);

}  // namespace troupe::apps
