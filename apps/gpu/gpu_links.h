#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "actors/play/linked_device.h"
#include "core/memory/device.h"
#include "core/memory/exported_memory.h"
#include "core/memory/memory_pool.h"
#include "core/result.h"

namespace troupe::apps {

/// Of several devices of a process that share a GPU one alone has links by NCCL: nobody else may
/// call them.
enum class OnGpu : std::uint8_t { first, with_others };

struct GpuToLink {
  int number = 0;  // In this process.
  OnGpu turn = OnGpu::first;
  Device& gpu;
  MemoryPool& memory;                // The device's own; both outlive its links,
  Result<ExportedMemory*> exported;  // and so does this, which is the same memory.
};

struct GpuLinks {
  std::unique_ptr<actors::LinkedDevice> device;  // Null where there are none.
  std::string missing;                           // Which there are not, and why.
};

/// The links of a GPU with those that other processes have: on one machine by memory that they
/// share, where they can; else by NCCL.
GpuLinks link_gpu(const GpuToLink& order);

}  // namespace troupe::apps
