#pragma once

#include <memory>

#include "core/memory/device.h"
#include "core/memory/memory_pool.h"
#include "core/result.h"
#include "transport/links/link.h"

namespace troupe::transport {

/// A GPU with links to GPUs of other processes. The kind of links depends on the source file that
/// is linked in.
struct LinkedGpu {
  static Result<std::unique_ptr<LinkedGpu>> open();

  std::unique_ptr<Device> computes;
  Device* copies = nullptr;  // The fabric's device for copies, if it has one.
  std::unique_ptr<MemoryPool> pool;
  std::unique_ptr<Fabric> fabric;
  /// Whether a link between two processes may be refused although both opened the GPU.
  bool may_be_refused = false;
};

}  // namespace troupe::transport
