#pragma once

#include <memory>
#include <span>

#include "core/memory/exported_memory.h"
#include "core/memory/memory_pool.h"
#include "core/result.h"

namespace troupe::kernels::cuda {

/// Returns a source of GPU memory. It reserves once as many addresses as the GPU has memory, and
/// maps memory there on demand. Mapped memory stays until the source is destroyed; blocks of all
/// sizes lie in it side by side. NCCL, other processes and network cards need memory of this kind
/// (gpuDirectRDMACapable, exported as a file descriptor). GPUs in `others` that can reach it get
/// direct access, so that copies need no detour through the host.
Result<std::unique_ptr<MemorySource>> device_memory(int number, std::span<const int> others = {});

/// Returns the memory of device_memory() for export, or an error if the GPU cannot export it.
Result<ExportedMemory*> exported(MemorySource& memory);

/// Reserves addresses for memory that another process exports, so that this GPU can read it. That
/// memory lies on this GPU or on one that it can reach.
Result<std::unique_ptr<ImportedMemory>> import_memory(int number, std::size_t reserved);

/// Returns the free and the total memory of a GPU.
Result<Room> room_of(int number);
/// Does the same, but destroys the context of some hundred MiB that the query creates on an unused
/// GPU. No other thread may begin to use the GPU meanwhile.
Result<Room> room_beforehand(int number);

/// Returns a source of pinned host memory, which all GPUs copy from and to while the host
/// continues. Any thread may use it. GPU `number` becomes the thread's current GPU.
std::unique_ptr<MemorySource> pinned_memory(int number);

}  // namespace troupe::kernels::cuda
