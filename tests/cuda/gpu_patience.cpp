#include "devices_run.h"

namespace troupe::actors {

// A host may read half a gigabyte of libraries from its disk before the first step.
std::chrono::milliseconds device_patience() { return std::chrono::milliseconds(5000); }

}  // namespace troupe::actors
