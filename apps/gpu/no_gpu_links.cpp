// In place of gpu_links.cpp where no CUDA toolkit was found.

#include "apps/gpu/gpu_links.h"

namespace troupe::apps {

GpuLinks link_gpu(const GpuToLink&) { return {nullptr, "this program was built without CUDA"}; }

}  // namespace troupe::apps
