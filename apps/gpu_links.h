#pragma once

#include <memory>
#include <string>

#include "actors/linked_device.h"
#include "core/device.h"
#include "core/memory_pool.h"
#include "core/result.h"

namespace troupe::apps {

/// By which of a machine's interfaces links to other machines are made: the one with this address.
/// Before any link is wanted, while the process has one thread. A person's own choice
/// (NCCL_SOCKET_IFNAME) stands.
void link_by_interface(const std::string& address);

/// The links of a GPU with those that other processes have: by NCCL. `gpu` has this number, and
/// `memory` is its own; both outlive them. An error says why there are none.
Result<std::unique_ptr<actors::LinkedDevice>> link_gpu(int number, Device& gpu, MemoryPool& memory);

}  // namespace troupe::apps
