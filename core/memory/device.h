#pragma once

#include <cstddef>
#include <cstdint>

#include "core/memory/memory_pool.h"
#include "core/result.h"

namespace troupe {

namespace kernels {
struct DeviceKernels;
}

/// A processor that computes in place of the CPU cores: a GPU. Its queue runs kernels in order
/// while the host continues. One thread enqueues work; any thread may call mark() and passed().
class Device {
 public:
  /// A position in the queue. Later marks are greater; 0 means no mark.
  using Mark = std::uint64_t;

  virtual ~Device() = default;
  virtual const kernels::DeviceKernels& kernels() const = 0;
  /// Prepares the calling thread, which must call it before it enqueues work.
  virtual void enter() = 0;
  /// Returns when the device has finished all enqueued work.
  virtual void wait() = 0;

  /// Marks the position that the queue has reached.
  virtual Mark mark() = 0;
  /// Returns the last mark before which all work is done, without waiting. An error says why the
  /// device failed. After an error the device does no more work, and nothing enqueued since the
  /// previous answer can be relied upon.
  virtual Result<Mark> passed() = 0;
  /// Makes the queue wait until `other`, of this process, has passed `mark`; the host does not
  /// wait. Returns a mark of this device that is passed once the queue continues. `other` may be in
  /// use on another thread.
  virtual Mark follow(Device& other, Mark mark) = 0;

  /// Begins work that is likely to repeat unchanged, so that a device may record it as a graph and
  /// replay it. The device may postpone the work until end_repeated() or until its thread waits.
  /// Marks set meanwhile precede the work. drop_repeated() discards the postponed work.
  virtual void begin_repeated() {}
  virtual void end_repeated() {}
  virtual void drop_repeated() {}

  /// Shows the work enqueued until end_range() under this name in profilers.
  virtual void begin_range(const char* name) = 0;
  virtual void end_range() = 0;

  /// The memory that the device's kernels read and write.
  virtual MemoryPlace place() const = 0;
  /// Host memory for copies to and from the device while the host continues.
  virtual MemoryPool& host_memory() = 0;
  /// Copies in order with other enqueued work, to and from memory of the host or this device; the
  /// source may be another device. The host must not change its memory before the copy is done.
  virtual void copy(const void* from, MemoryPlace from_place, void* to, std::size_t bytes) = 0;
};

}  // namespace troupe
