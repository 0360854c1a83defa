#pragma once

#include <cstddef>
#include <cstdint>

#include "core/memory/memory_pool.h"
#include "core/result.h"

namespace troupe {

namespace kernels {
struct DeviceKernels;
}

/// What computes in place of the cores: a GPU. Work is given to its queue in order, by the kernels
/// that it has; the host goes on meanwhile. One thread gives it work; any may mark it and ask.
class Device {
 public:
  /// A place in its queue. One that was marked later is greater; none is 0.
  using Mark = std::uint64_t;

  virtual ~Device() = default;
  virtual const kernels::DeviceKernels& kernels() const = 0;
  /// By the thread that is to give it work, before it does.
  virtual void enter() = 0;
  /// Returns when all that was given to it is done.
  virtual void wait() = 0;

  /// Marks the place that its queue has reached.
  virtual Mark mark() = 0;
  /// The last mark before which all is done; returns at once. An error is why the device has
  /// failed: nothing that was given to it since the last answer can be relied upon, and it does no
  /// more.
  virtual Result<Mark> passed() = 0;
  /// Its queue goes on only when `other`, of this process, has passed `mark`; the host does not
  /// wait. Gives a mark of its own, which is passed once that is so. `other` may be at work on
  /// another thread.
  virtual Mark follow(Device& other, Mark mark) = 0;

  /// What is given to it from here to end_repeated() may wait until then, or until its thread waits
  /// for it: it is likely to come again just so, and a device that knows it has it done at one
  /// word. Marks that are set meanwhile stand before it. drop_repeated() in place of the end: what
  /// has waited is not wanted any more.
  virtual void begin_repeated() {}
  virtual void end_repeated() {}
  virtual void drop_repeated() {}

  /// What is given to it from here to end_range() is shown under that name by tools that look on.
  virtual void begin_range(const char* name) = 0;
  virtual void end_range() = 0;

  /// Where its kernels read and write.
  virtual MemoryPlace place() const = 0;
  /// Memory of the host that it copies from and to while the host goes on.
  virtual MemoryPool& host_memory() = 0;
  /// In order with its other work, from memory of `from_place`: its own, the host's or another
  /// device's; to its own or the host's. The host keeps its memory as it is until that is done.
  virtual void copy(const void* from, MemoryPlace from_place, void* to, std::size_t bytes) = 0;
};

}  // namespace troupe
