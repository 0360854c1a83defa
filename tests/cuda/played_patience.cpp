#include "devices_run.h"
#include "sanitized.h"

namespace troupe::actors {

std::chrono::milliseconds device_patience() {
  return std::chrono::milliseconds(is_sanitized ? 5000 : 500);
}

}  // namespace troupe::actors
