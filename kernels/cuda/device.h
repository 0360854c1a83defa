#pragma once

#include <memory>

#include "core/device.h"
#include "core/result.h"

namespace troupe::kernels::cuda {

/// How many GPUs this process has; an error says why there are none.
Result<int> count_devices();

/// A GPU of this process, by its number. All that is given to it goes through one queue.
Result<std::unique_ptr<Device>> open_device(int number);

}  // namespace troupe::kernels::cuda
