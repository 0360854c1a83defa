#include "apps/gpu/gpus.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/cuda/device.h"
#include "kernels/cuda/machine/arena.h"

namespace troupe::apps {

Result<int> count_gpus() { return kernels::cuda::count_devices(); }
void prepare_for_gpus() { kernels::cuda::prepare_process(); }
Status check_gpu_queues(int times_opened) { return kernels::cuda::check_queues(times_opened); }
int free_gpu_queues(int times_opened) { return kernels::cuda::free_queues(times_opened); }
Result<std::string> gpu_libraries() { return kernels::cuda::tensor_core_libraries(); }
Status gpu_compiler() { return kernels::cuda::runtime_compiler(); }
Result<std::unique_ptr<Device>> open_gpu(int number,
                                         std::function<void(const std::string&)> remark) {
  return kernels::cuda::open_device(number, std::move(remark));
}
Status open_tensor_cores(Device& gpu) { return kernels::cuda::open_tensor_cores(gpu); }
void* queue_of_gpu(Device& gpu) { return kernels::cuda::native_queue(gpu); }
Result<std::unique_ptr<MemorySource>> gpu_memory(int number, std::span<const int> others) {
  return kernels::cuda::device_memory(number, others);
}
Result<ExportedMemory*> exported_gpu_memory(MemorySource& memory) {
  return kernels::cuda::exported(memory);
}

Result<std::vector<std::int64_t>> gpu_room(int most) {
  const auto count = count_gpus();
  if (!count) return count.error();
  std::vector<std::int64_t> all;
  for (int number = 0; number < std::min(*count, most); ++number) {
    const auto room = kernels::cuda::room_beforehand(number);
    if (!room) return within("GPU " + std::to_string(number), room.error());
    all.push_back(static_cast<std::int64_t>(room->free));
  }
  return all;
}

}  // namespace troupe::apps
