#include "transport/links/nccl_fabric.h"

#include <cuda_runtime.h>

#include <atomic>
#include <cassert>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/links/nccl_link.h"

namespace troupe::transport {
namespace {

using NcclLinks = std::vector<std::unique_ptr<NcclLink>>;

constexpr int queues_of_link = 3;  // Our own, and two that NCCL makes for each communicator.

/// Aborts all communicators in one group, so that none waits for a device that the others occupy.
/// An abort makes its group blocking, even for non-blocking communicators: the group ends when all
/// are freed, or never, if another process never lets go.
void abort_together(const NcclLibrary& nccl, int device, NcclLinks links,
                    std::atomic<bool>& ended) {
  (void)cudaSetDevice(device);
  (void)nccl.begin_group();
  for (const auto& link : links)
    if (link->communicator()) (void)nccl.abort(link->communicator());
  (void)nccl.end_group();
  // The device has let go once the streams are empty, including the work behind NCCL's.
  for (const auto& link : links) (void)cudaStreamSynchronize(link->stream());
  links.clear();
  ended = true;
}

class NcclFabric final : public Fabric {
 public:
  NcclFabric(const NcclLibrary& nccl, const NcclOrder& order, std::uint64_t* word)
      : nccl_(nccl), order_(order), word_(word), poison_(*word) {}
  /// A thread that never returns is detached; the process must end then.
  ~NcclFabric() override {
    if (ender_.joinable()) *ended_ ? ender_.join() : ender_.detach();
    if (*ended_) (void)cudaFreeHost(word_);
  }
  NcclFabric(const NcclFabric&) = delete;
  NcclFabric& operator=(const NcclFabric&) = delete;

  /// NCCL listens for the ends of each id on a thread of its own. If an end never connects, that
  /// thread stays until the process ends: one for each link that was not formed.
  Result<LinkId> name_link() override {
    ncclUniqueId unique;
    if (auto problem = problem_of_nccl(nccl_, nccl_.unique_id(&unique)); !problem.empty())
      return Error{problem};
    LinkId id;
    std::memcpy(id.bytes.data(), &unique, sizeof unique);
    return id;
  }

  Result<std::unique_ptr<Link>> begin(const LinkId& id, LinkSide side) override {
    const bool sends = side == LinkSide::sends;
    return begin(id, {sends ? 0 : 1, 2}, sends ? NcclWay::sends : NcclWay::receives);
  }

  bool adds() const override { return true; }
  Result<std::unique_ptr<Link>> begin_adding(const LinkId& id, LinkMember member) override {
    return begin(id, member, NcclWay::adds);
  }

  /// Runs on a thread of its own, because it blocks. No other thread calls NCCL meanwhile.
  void end(std::vector<std::unique_ptr<Link>> links) override {
    assert(*ended_ && "one end comes after the other");
    if (ender_.joinable()) ender_.join();
    NcclLinks own;
    for (auto& link : links) own.emplace_back(static_cast<NcclLink*>(link.release()));
    links_ -= static_cast<int>(own.size());
    *ended_ = own.empty();
    if (own.empty()) return;
    ender_ = std::thread(
        [&nccl = nccl_, device = order_.device, own = std::move(own), ended = ended_]() mutable {
          abort_together(nccl, device, std::move(own), *ended);
        });
  }
  bool ended() override { return *ended_; }

  Poison& poison() override { return poison_; }

 private:
  Result<std::unique_ptr<Link>> begin(const LinkId& id, LinkMember member, NcclWay way) {
    auto link = std::make_unique<NcclLink>(nccl_, order_, member, way);
    if (auto begun = link->begin(id); !begun) return begun.error();
    count_link();
    return std::unique_ptr<Link>(std::move(link));
  }
  void count_link() {
    const int queues = ++links_ * queues_of_link, before = queues - queues_of_link;
    if (queues <= order_.free_queues || before > order_.free_queues) return;
    order_.remark("GPU " + std::to_string(order_.device) + " has " + std::to_string(links_) +
                  " or more links by NCCL with " + std::to_string(queues_of_link) +
                  " queues each, but CUDA has connections for " +
                  std::to_string(order_.free_queues) +
                  " of these queues; transfers may wait for each other");
  }

  const NcclLibrary& nccl_;
  const NcclOrder order_;
  std::uint64_t* word_;
  Poison poison_;
  int links_ = 0;
  std::shared_ptr<std::atomic<bool>> ended_ = std::make_shared<std::atomic<bool>>(true);
  std::thread ender_;
};

}  // namespace

Result<std::unique_ptr<Fabric>> open_nccl_fabric(const NcclOrder& order) {
  const auto nccl = nccl_library();
  if (!nccl) return nccl.error();
  void* word = nullptr;
  auto problem = problem_of_cuda(cudaSetDevice(order.device));
  if (problem.empty())
    problem = problem_of_cuda(cudaHostAlloc(&word, sizeof(std::uint64_t), cudaHostAllocMapped));
  if (!problem.empty())
    return within("GPU " + std::to_string(order.device), Error{std::move(problem)});
  auto* const number = new (word) std::uint64_t{0};
  return std::unique_ptr<Fabric>(std::make_unique<NcclFabric>(**nccl, order, number));
}

Result<std::string> kind_of_nccl() {
  const auto nccl = nccl_library();
  if (!nccl) return nccl.error();
  const int version = (*nccl)->version;  // Version 2.28.9 is encoded as 22809.
  return "nccl " + std::to_string(version / 10'000) + "." + std::to_string(version / 100 % 100) +
         "." + std::to_string(version % 100);
}

Result<std::string> bus_of_gpu(int device) {
  char bus[32] = {};
  const auto problem = problem_of_cuda(cudaDeviceGetPCIBusId(bus, sizeof bus, device));
  if (!problem.empty()) return within("GPU " + std::to_string(device), Error{problem});
  return std::string(bus);
}

}  // namespace troupe::transport
