#pragma once

#include <memory>

#include "core/memory/device.h"
#include "core/memory/exported_memory.h"
#include "core/result.h"
#include "transport/links/link.h"

namespace troupe::transport {

/// What a GPU must have for links with other processes of its machine.
struct IpcOrder {
  std::unique_ptr<Device> copies;  // A queue of the GPU, for the links alone.
  const ExportedMemory& memory;    // In which all lies that is sent.
  ImportMemory import;             // For this GPU to read.
};

/// Links between processes of one machine and one user whose GPUs are the same, or can read each
/// other's memory. The receiver reads the memory of the sender, and copies it into its own:
///
///     sender                                        receiver
///        --- offer: where it lies ------------------>
///                                                     copies it, in a queue of its own
///        <-- taken ----------------------------------
///
/// No device ever waits for another process, and none writes into memory that is not its own. So
/// there is nothing to abort: who gives a link up hangs up, and what the other end copies meanwhile
/// is finished and dropped. When a process dies its socket ends, and what it has exported stays
/// until nobody reads it any more.
Result<std::unique_ptr<Fabric>> open_ipc_fabric(IpcOrder order);

/// Both ends of a link must have the same.
constexpr const char* kind_of_ipc = "ipc 1";

}  // namespace troupe::transport
