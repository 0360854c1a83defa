// Replaces gpu_links.cpp in a build without the CUDA toolkit.

#include "apps/gpu/gpu_links.h"

namespace troupe::apps {

GpuLinks link_gpu(const GpuToLink&) { return {nullptr, "this program was built without CUDA"}; }

}  // namespace troupe::apps
