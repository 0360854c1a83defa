#pragma once

#include <memory>

#include "core/memory/device.h"
#include "core/memory/exported_memory.h"
#include "core/result.h"
#include "transport/links/link.h"

namespace troupe::transport {

/// The parts of a GPU for links with other processes of its machine.
struct IpcOrder {
  std::unique_ptr<Device> copies;  // A queue of the GPU, used only by the links.
  const ExportedMemory& memory;    // All sent tensors lie in this memory.
  ImportMemory import;             // Imports memory that this GPU can read.
};

/// Opens links between processes of one machine and one user whose GPUs are the same or can read
/// each other's memory. The receiver copies from the sender's memory into its own:
///
///     sender                                        receiver
///        --- offer: where the tensors lie ---------->
///                                                     copies them, in its own queue
///        <-- taken ----------------------------------
///
/// No device waits for another process, and none writes into another process's memory. So nothing
/// needs to be aborted: an end that gives a link up hangs up, and the other end finishes its copies
/// and drops them. When a process dies, its socket ends, and its exported memory stays until nobody
/// reads it.
Result<std::unique_ptr<Fabric>> open_ipc_fabric(IpcOrder order);

/// The kind of these links; both ends must have the same kind.
constexpr const char* kind_of_ipc = "ipc 1";

}  // namespace troupe::transport
