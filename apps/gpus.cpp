#include "apps/gpus.h"

#include "kernels/cuda/arena.h"
#include "kernels/cuda/device.h"

namespace troupe::apps {

Result<int> count_gpus() { return kernels::cuda::count_devices(); }
void prepare_for_gpus() { kernels::cuda::prepare_process(); }
Status check_gpu_queues(int devices) { return kernels::cuda::check_queues(devices); }
Result<std::unique_ptr<Device>> open_gpu(int number) { return kernels::cuda::open_device(number); }
Result<std::unique_ptr<MemorySource>> gpu_memory(int number) {
  return kernels::cuda::device_memory(number);
}

}  // namespace troupe::apps
