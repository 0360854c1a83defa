// Replaces nccl_links.cpp in a build without NCCL.

#include "apps/gpu/nccl_links.h"

namespace troupe::apps {

void link_by_interface(const std::string&) {}

Status add_nccl_links(const GpuToLink&, actors::LinkedDevice&) {
  return Error{"this program was built without NCCL"};
}

}  // namespace troupe::apps
