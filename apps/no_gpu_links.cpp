// In place of gpu_links.cpp where NCCL was not found.

#include "apps/gpu_links.h"

namespace troupe::apps {

void link_by_interface(const std::string&) {}

Result<std::unique_ptr<actors::LinkedDevice>> link_gpu(int, Device&, MemoryPool&) {
  return Error{"this program was built without NCCL"};
}

}  // namespace troupe::apps
