// Replaces gpus.cpp and gpu_links.cpp in a build without the CUDA toolkit.

#include "apps/gpu/gpu_links.h"
#include "apps/gpu/gpus.h"

namespace troupe::apps {
namespace {

const Error built_without{
    "this program was built without CUDA; install the toolkit and build it again"};

}  // namespace

Result<int> count_gpus() { return built_without; }
void prepare_for_gpus() {}
Status check_gpu_queues(int) { return built_without; }
int free_gpu_queues(int) { return 0; }
Result<std::string> gpu_libraries() { return built_without; }
Status gpu_compiler() { return built_without; }
Result<std::unique_ptr<Device>> open_gpu(int, std::function<void(const std::string&)>) {
  return built_without;
}
Status open_tensor_cores(Device&) { return built_without; }
void* queue_of_gpu(Device&) { return nullptr; }
Result<std::unique_ptr<MemorySource>> gpu_memory(int, std::span<const int>) {
  return built_without;
}
Result<ExportedMemory*> exported_gpu_memory(MemorySource&) { return built_without; }
Result<std::vector<std::int64_t>> gpu_room(int) { return built_without; }
GpuLinks link_gpu(const GpuToLink&) { return {nullptr, "this program was built without CUDA"}; }

}  // namespace troupe::apps
