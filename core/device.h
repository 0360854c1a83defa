#pragma once

#include <cstdint>

#include "core/result.h"

namespace troupe {

namespace kernels {
struct DeviceKernels;
}

/// What computes in place of the cores: a GPU. Work is given to its queue in order, by the kernels
/// that it has; the host goes on meanwhile. One thread gives it work.
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

  /// What is given to it from here to end_range() is shown under that name by tools that look on.
  virtual void begin_range(const char* name) = 0;
  virtual void end_range() = 0;
};

}  // namespace troupe
