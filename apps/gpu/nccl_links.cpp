#include "apps/gpu/nccl_links.h"

#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "apps/gpu/gpus.h"
#include "apps/hosts/interfaces.h"
#include "transport/links/nccl_fabric.h"
#include "transport/machine_id.h"

namespace troupe::apps {

void link_by_interface(const std::string& address) {
  (void)setenv("NCCL_DEBUG_FILE", "/dev/stderr", 0);
  for (const auto& interface : read_interfaces())
    // "=" asks for an exact match; without it NCCL matches a prefix.
    if (interface.address == address)
      (void)setenv("NCCL_SOCKET_IFNAME", ("=" + interface.name).c_str(), 0);
}

Status add_nccl_links(const GpuToLink& order, actors::LinkedDevice& linked) {
  const auto kind = transport::kind_of_nccl();
  if (!kind) return kind.error();
  const auto bus = transport::bus_of_gpu(order.number);
  if (!bus) return bus.error();
  auto fabric =
      transport::open_nccl_fabric({.device = order.number,
                                   .queue = static_cast<CUstream_st*>(queue_of_gpu(order.gpu)),
                                   .free_queues = order.free_queues,
                                   .remark = order.remark});
  if (!fabric) return fabric.error();
  linked.links.push_back(std::make_unique<actors::DeviceLinks>(
      *kind, transport::this_machine_id() + "/" + *bus, std::vector<std::string>{},
      std::move(*fabric), [&gpu = order.gpu] { gpu.enter(); }));
  return Done{};
}

}  // namespace troupe::apps
