#include "apps/gpu/gpu_links.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "apps/gpu/nccl_links.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/machine/arena.h"
#include "transport/links/ipc_fabric.h"
#include "transport/machine_id.h"

namespace troupe::apps {
namespace {

/// The place contains the user, since processes of other users cannot open exported memory.
std::string place_of(const std::string& gpu) {
  return transport::this_machine_id() + "/" + std::to_string(geteuid()) + "/" + gpu;
}

Status add_ipc_links(const GpuToLink& order, actors::LinkedDevice& linked) {
  if (!order.exported) return order.exported.error();
  const auto own = kernels::cuda::uuid_of(order.number);
  if (!own) return own.error();
  const auto gpus = kernels::cuda::gpus_in_reach(order.number);
  if (!gpus) return gpus.error();
  std::vector<std::string> reaches;
  for (const auto& gpu : *gpus) reaches.push_back(place_of(gpu));
  auto copies = kernels::cuda::open_device(order.number);
  if (!copies) return copies.error();
  auto fabric =
      transport::open_ipc_fabric({.copies = std::move(*copies),
                                  .memory = **order.exported,
                                  .import = [number = order.number](std::size_t reserved) {
                                    return kernels::cuda::import_memory(number, reserved);
                                  }});
  if (!fabric) return fabric.error();
  linked.links.push_back(std::make_unique<actors::DeviceLinks>(
      transport::kind_of_ipc, place_of(*own), std::move(reaches), std::move(*fabric),
      [&gpu = order.gpu] { gpu.enter(); }));
  return Done{};
}

}  // namespace

GpuLinks link_gpu(const GpuToLink& order) {
  auto linked = std::make_unique<actors::LinkedDevice>(order.memory);
  std::string missing;
  const auto note = [&](const char* kind, const Status& added) {
    if (added) return;
    if (!missing.empty()) missing += "; ";
    missing += within(kind, added.error()).text;
  };
  // The faster carrier comes first.
  note("shared memory of GPUs", add_ipc_links(order, *linked));
  if (order.turn == OnGpu::first) note("NCCL", add_nccl_links(order, *linked));
  if (linked->links.empty()) linked.reset();
  return {std::move(linked), std::move(missing)};
}

}  // namespace troupe::apps
