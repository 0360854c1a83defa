#include "transport/nccl_fabric.h"

#include <cuda_runtime.h>
#include <nccl.h>

#include <atomic>
#include <cassert>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/nccl_link.h"

namespace troupe::transport {
namespace {

using NcclLinks = std::vector<std::unique_ptr<NcclLink>>;

/// In one group, so that no one waits for a device which the others occupy. To abort may wait for
/// ever all the same, where another process never lets go.
void abort_together(int device, NcclLinks links, std::atomic<bool>& ended) {
  (void)cudaSetDevice(device);
  (void)ncclGroupStart();
  for (const auto& link : links)
    if (link->communicator()) (void)ncclCommAbort(link->communicator());
  (void)ncclGroupEnd();
  // NCCL goes on by itself, and of a communicator that is gone nobody may ask; but the device has
  // let go once the streams have run out.
  for (const auto& link : links) (void)cudaStreamSynchronize(link->stream());
  links.clear();
  ended = true;
}

class NcclFabric final : public Fabric {
 public:
  NcclFabric(const NcclOrder& order, std::uint64_t* word)
      : order_(order), word_(word), poison_(*word) {}
  /// A thread that never comes back is left behind: the process is to end then.
  ~NcclFabric() override {
    if (ender_.joinable()) *ended_ ? ender_.join() : ender_.detach();
    if (*ended_) (void)cudaFreeHost(word_);
  }
  NcclFabric(const NcclFabric&) = delete;
  NcclFabric& operator=(const NcclFabric&) = delete;

  Result<LinkId> name_link() override {
    ncclUniqueId unique;
    if (auto problem = problem_of_nccl(ncclGetUniqueId(&unique)); !problem.empty())
      return Error{problem};
    LinkId id;
    std::memcpy(id.bytes.data(), &unique, sizeof unique);
    return id;
  }

  Result<std::unique_ptr<Link>> begin(const LinkId& id, LinkSide side) override {
    auto link = std::make_unique<NcclLink>(order_, side);
    if (auto begun = link->begin(id); !begun) return begun.error();
    return std::unique_ptr<Link>(std::move(link));
  }

  /// On a thread of its own, since it waits. Meanwhile nobody else calls NCCL.
  void end(std::vector<std::unique_ptr<Link>> links) override {
    assert(*ended_ && "one end comes after the other");
    if (ender_.joinable()) ender_.join();
    NcclLinks own;
    for (auto& link : links) own.emplace_back(static_cast<NcclLink*>(link.release()));
    *ended_ = own.empty();
    if (own.empty()) return;
    ender_ = std::thread([device = order_.device, own = std::move(own), ended = ended_]() mutable {
      abort_together(device, std::move(own), *ended);
    });
  }
  bool ended() override { return *ended_; }

  Poison& poison() override { return poison_; }

 private:
  const NcclOrder order_;
  std::uint64_t* word_;
  Poison poison_;
  std::shared_ptr<std::atomic<bool>> ended_ = std::make_shared<std::atomic<bool>>(true);
  std::thread ender_;
};

}  // namespace

Result<std::unique_ptr<Fabric>> open_nccl_fabric(const NcclOrder& order) {
  void* word = nullptr;
  auto problem = problem_of_cuda(cudaSetDevice(order.device));
  if (problem.empty())
    problem = problem_of_cuda(cudaHostAlloc(&word, sizeof(std::uint64_t), cudaHostAllocMapped));
  if (!problem.empty())
    return within("GPU " + std::to_string(order.device), Error{std::move(problem)});
  auto* const number = new (word) std::uint64_t{0};
  return std::unique_ptr<Fabric>(std::make_unique<NcclFabric>(order, number));
}

}  // namespace troupe::transport
