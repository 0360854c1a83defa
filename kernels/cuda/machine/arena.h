#pragma once

#include <memory>
#include <span>

#include "core/memory/exported_memory.h"
#include "core/memory/memory_pool.h"
#include "core/result.h"

namespace troupe::kernels::cuda {

/// Memory of a GPU's own. A range of addresses as long as all its memory is reserved once; memory
/// is mapped into it as it is asked for, stays where it is, and goes when the source does. Blocks
/// of all sizes lie in it side by side. What NCCL registers, other processes open and network cards
/// read has to be of this kind (gpuDirectRDMACapable, exported as a file descriptor). Other GPUs of
/// this process read it too where they can reach it, without a way by the host.
Result<std::unique_ptr<MemorySource>> device_memory(int number, std::span<const int> others = {});

/// What device_memory() has given, for other processes. An error where the GPU cannot do that.
Result<ExportedMemory*> exported(MemorySource& memory);

/// Addresses for memory that another process has exported, whose GPU is this one or one within its
/// reach; for this GPU to read.
Result<std::unique_ptr<ImportedMemory>> import_memory(int number, std::size_t reserved);

/// How much of its memory this GPU has, and how much is left.
Result<Room> room_of(int number);
/// The same, and a process that has not used this GPU before has not done so afterwards: to ask
/// makes a context there, of some hundred MiB. Not while another thread may begin to use it.
Result<Room> room_beforehand(int number);

/// Memory of the host that GPUs copy from and to while the host goes on.
std::unique_ptr<MemorySource> pinned_memory();

}  // namespace troupe::kernels::cuda
