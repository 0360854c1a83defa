#include "linked_gpu.h"

#include <utility>

#include "kernels/cuda/device.h"
#include "kernels/cuda/machine/arena.h"
#include "transport/links/ipc_fabric.h"

namespace troupe::transport {

Result<std::unique_ptr<LinkedGpu>> LinkedGpu::open() {
  auto gpu = std::make_unique<LinkedGpu>();
  auto computes = kernels::cuda::open_device(0);
  if (!computes) return computes.error();
  auto copies = kernels::cuda::open_device(0);
  if (!copies) return copies.error();
  auto memory = kernels::cuda::device_memory(0);
  if (!memory) return memory.error();
  const auto exported = kernels::cuda::exported(**memory);
  if (!exported) return exported.error();
  gpu->computes = std::move(*computes);
  gpu->copies = copies->get();
  gpu->pool = std::make_unique<MemoryPool>(std::move(*memory));
  auto fabric = open_ipc_fabric(
      {.copies = std::move(*copies), .memory = **exported, .import = [](std::size_t reserved) {
         return kernels::cuda::import_memory(0, reserved);
       }});
  if (!fabric) return fabric.error();
  gpu->fabric = std::move(*fabric);
  return gpu;
}

}  // namespace troupe::transport
