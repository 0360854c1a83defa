#pragma once

#include <memory>

#include "core/memory/device.h"
#include "core/memory/memory_pool.h"
#include "core/result.h"
#include "transport/links/link.h"

namespace troupe::transport {

/// A GPU with links to those of other processes. Of which kind they are depends on the source that
/// is built in.
struct LinkedGpu {
  static Result<std::unique_ptr<LinkedGpu>> open();

  std::unique_ptr<Device> computes;
  Device* copies = nullptr;  // The fabric's, where it has one.
  std::unique_ptr<MemoryPool> pool;
  std::unique_ptr<Fabric> fabric;
  /// Whether two processes may be refused a link although each has opened this GPU.
  bool may_be_refused = false;
};

}  // namespace troupe::transport
