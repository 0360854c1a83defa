#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/play/linked_device.h"
#include "core/memory/device.h"
#include "core/memory/exported_memory.h"
#include "core/memory/memory_pool.h"
#include "core/result.h"

namespace troupe::apps {

/// If several devices of a process share a GPU, only the first has NCCL links: NCCL allows one
/// caller.
enum class OnGpu : std::uint8_t { first, with_others };

struct GpuToLink {
  int number = 0;  // The GPU's number in this process.
  OnGpu turn = OnGpu::first;
  Device& gpu;
  MemoryPool& memory;  // The device's own pool. It and the device outlive the links.
  // The same memory, exported to other processes; outlives the links too.
  Result<ExportedMemory*> exported;
  int free_queues = 0;  // The queues that links by NCCL can have without waiting for each other.
  std::function<void(const std::string&)> remark;  // Told if they have more.
};

struct GpuLinks {
  std::unique_ptr<actors::LinkedDevice> device;  // Null if there are no links.
  std::string missing;  // The kinds of links that are missing, and the reasons.
};

/// Opens the links of a GPU to GPUs of other processes: by shared memory on one machine if
/// possible, else by NCCL.
GpuLinks link_gpu(const GpuToLink& order);

}  // namespace troupe::apps
