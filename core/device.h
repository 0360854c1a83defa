#pragma once

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
};

}  // namespace troupe
