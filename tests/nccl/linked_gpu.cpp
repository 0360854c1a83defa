#include "linked_gpu.h"

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>

#include "kernels/cuda/device.h"
#include "kernels/cuda/machine/arena.h"
#include "transport/links/nccl_fabric.h"

namespace troupe::transport {
namespace {

/// Makes this process look like a machine of its own to NCCL, which refuses two members of one
/// machine with the same GPU. The processes then connect over the network. It disables features of
/// large machines, and keeps NCCL's log off stdout, which carries the answers. Call it once, before
/// NCCL reads its environment.
void be_a_machine() {
  (void)setenv("NCCL_HOSTID", ("process " + std::to_string(getpid())).c_str(), 1);
  constexpr std::pair<const char*, const char*> variables[] = {
      {"NCCL_NET", "Socket"},          {"NCCL_SOCKET_IFNAME", "lo"},
      {"NCCL_RAS_ENABLE", "0"},        {"NCCL_MNNVL_ENABLE", "0"},
      {"NCCL_CUMEM_HOST_ENABLE", "0"}, {"NCCL_DEBUG_FILE", "/dev/stderr"}};
  for (const auto& [name, value] : variables) (void)setenv(name, value, 0);
}

}  // namespace

Result<std::unique_ptr<LinkedGpu>> LinkedGpu::open() {
  be_a_machine();
  kernels::cuda::prepare_process();
  auto gpu = std::make_unique<LinkedGpu>();
  auto computes = kernels::cuda::open_device(0);
  if (!computes) return computes.error();
  auto memory = kernels::cuda::device_memory(0);
  if (!memory) return memory.error();
  gpu->computes = std::move(*computes);
  gpu->pool = std::make_unique<MemoryPool>(std::move(*memory));
  // Reserves all memory beforehand, since allocating while a link waits might block.
  (void)gpu->pool->take(std::size_t{64} << 20);
  gpu->pool->trim();
  auto* const queue = kernels::cuda::native_queue(*gpu->computes);
  // The links of both processes must fit on one GPU at once.
  auto fabric = open_nccl_fabric({.device = 0,
                                  .queue = static_cast<CUstream_st*>(queue),
                                  .most_blocks = 1,
                                  .most_adding_blocks = 1});
  if (!fabric) return fabric.error();
  gpu->fabric = std::move(*fabric);
  gpu->may_be_refused = MAY_BE_REFUSED;
  return gpu;
}

}  // namespace troupe::transport
