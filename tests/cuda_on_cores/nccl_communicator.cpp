#include "tests/cuda_on_cores/nccl_communicator.h"

#include <algorithm>
#include <utility>

using cuda_on_cores::nccl_world;
using cuda_on_cores::Operation;
using cuda_on_cores::Part;

namespace {

constexpr unsigned most_looks = 3;

}  // namespace

/// Never destroyed, since some users end late.
cuda_on_cores::NcclWorld& cuda_on_cores::nccl_world() {
  static auto* world = new NcclWorld;
  return *world;
}

bool cuda_on_cores::NcclWorld::is_occupied(int device) const {
  return std::ranges::any_of(alive, [&](const auto* one) {
    return one->device == device && one->membership->in_queue > 0;
  });
}

ncclComm::ncclComm(const std::string& name, const cuda_on_cores::Introduction& own)
    : own(own),
      device(cuda_on_cores::current_device()),
      membership(std::make_shared<cuda_on_cores::Membership>(name, own)) {}

void ncclComm::go_on() {
  if (phase != Phase::failed && membership->wires.has_lost_one())
    fail(ncclRemoteError, "a member is gone");
  switch (phase) {
    case Phase::meets:
      return meet();
    case Phase::connects:
      return connect();
    case Phase::settles:
      if (looks_left_-- > 0) return;
      if (stream) stream->let_go();
      phase = Phase::settled;
      return;
    case Phase::settled:
    case Phase::failed:
      return;
  }
}

void ncclComm::meet() {
  if (nccl_world().is_occupied(device) || !membership->wires.meet()) return;
  const int twin = membership->wires.twin();
  if (twin < 0) return settle_later();
  fail(ncclInvalidUsage, "members " + std::to_string(own.member) + " and " + std::to_string(twin) +
                             " have one GPU, " + own.bus.data());
}

void ncclComm::connect() {
  if (has_unpaired()) return fail(ncclInvalidUsage, "a send to oneself is not received");
  if (!is_connected && !nccl_world().is_occupied(device))
    is_connected = membership->wires.connect();
  if (!is_connected) return;
  settle_later();
  put_into_stream();
}

void ncclComm::settle_later() {
  phase = Phase::settles;
  looks_left_ = static_cast<unsigned>(nccl_world().random()) % (most_looks + 1);
}

/// Returns whether a send to oneself has no matching receive in the group, or the reverse.
bool ncclComm::has_unpaired() const {
  std::vector<std::size_t> sends, receives;
  for (const auto& part : parts) {
    if (part.peer != own.member || part.kind == Part::Kind::reduce) continue;
    (part.kind == Part::Kind::send ? sends : receives).push_back(part.bytes);
  }
  return sends != receives;
}

void ncclComm::put_into_stream() {
  const auto operation = std::make_shared<Operation>(membership, std::exchange(parts, {}));
  ++nccl_world().operations;
  if (!stream->put_until([operation] { return operation->go_on(); }))
    fail(ncclUnhandledCudaError, "a stream takes nothing");
}

void ncclComm::fail(ncclResult_t why, const std::string& text) {
  phase = Phase::failed;
  failure = why;
  nccl_world().last_error = text;
}
