#include "apps/gpu/gpu_warnings.h"

#include "apps/hosts/gpu_checks.h"

namespace troupe::apps {

std::vector<std::string> GpuWarnings::news(const actors::NodeHere& node,
                                           const std::vector<actors::GpuReading>& gpus) {
  std::vector<std::string> news;
  const std::lock_guard lock(mutex_);
  for (const auto& gpu : gpus) {
    const auto trouble = trouble_of(gpu);
    if (trouble.empty() || !known_.emplace(node.incarnation, gpu.number).second) continue;
    news.push_back("GPU " + std::to_string(gpu.number) + " of node " + node.name + " " + trouble);
  }
  return news;
}

void GpuWarnings::forget(std::uint64_t incarnation) {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [&](const auto& one) { return one.first == incarnation; });
}

}  // namespace troupe::apps
