#pragma once

#include <cstddef>

#include "core/memory_pool.h"

namespace troupe {

namespace kernels {
struct DeviceKernels;
}

/// What computes in place of the cores: a GPU. Work is given to it in order, by the kernels that it
/// has; the host goes on meanwhile.
class Device {
 public:
  virtual ~Device() = default;
  virtual const kernels::DeviceKernels& kernels() const = 0;
  /// By a thread that is to give it work, before it does.
  virtual void enter() = 0;
  /// Returns when all that was given to it is done.
  virtual void wait() = 0;

  /// Where its kernels read and write.
  virtual Place place() const = 0;
  /// Memory of the host that it copies from and to while the host goes on.
  virtual MemoryPool& host_memory() = 0;
  /// In order with its other work, from memory of `from_place`: its own, the host's or another
  /// device's; to its own or the host's. The host keeps its memory as it is until that is done.
  virtual void copy(const void* from, Place from_place, void* to, std::size_t bytes) = 0;
};

}  // namespace troupe
