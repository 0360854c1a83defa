#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda_on_cores/nccl_communicator.h"
#include "tests/cuda_on_cores/nccl_operation.h"
#include "tests/cuda_on_cores/nccl_wires.h"
#include "transport/links/nccl_library.h"

using cuda_on_cores::end_by_misuse;
using cuda_on_cores::Introduction;
using cuda_on_cores::nccl_world;
using cuda_on_cores::Part;

namespace {

constexpr std::string_view prefix = "troupe-played-nccl-";

/// The group of this thread.
struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<std::pair<ncclComm_t, Part>> parts;
  std::vector<ncclComm_t> aborted;
};
thread_local Group group;

ncclResult_t refuse(ncclResult_t why, const std::string& text) {
  nccl_world().last_error = text;
  if (group.depth > 0) group.error = why;
  return why;
}

/// Checks that each device has one caller at a time, as NCCL requires.
void enter(int device) {
  const auto found = nccl_world().groups.find(device);
  if (found != nccl_world().groups.end() && found->second != std::this_thread::get_id())
    end_by_misuse("one thread calls it for a device while another one has a group there");
  if (group.depth > 0) nccl_world().groups[device] = std::this_thread::get_id();
}

ncclComm& alive(ncclComm_t communicator) {
  if (!nccl_world().alive.contains(communicator)) end_by_misuse("a communicator is gone or none");
  enter(communicator->device);
  return *communicator;
}

ncclResult_t add(ncclComm_t which, const Part& part, cudaStream_t stream) {
  const std::lock_guard lock(nccl_world().mutex);
  auto& communicator = alive(which);
  if (communicator.phase == ncclComm::Phase::failed)
    return refuse(communicator.failure, nccl_world().last_error);
  if (communicator.phase != ncclComm::Phase::settled)
    end_by_misuse("a communicator is used before it has settled");
  if (group.depth == 0) end_by_misuse("nothing but groups is played");
  if (part.peer < 0 || part.peer >= communicator.own.of || !part.memory)
    return refuse(ncclInvalidArgument, "there is no such member, or no memory");
  if (std::exchange(communicator.stream, stream) != stream && communicator.is_connected)
    end_by_misuse("a communicator with two streams is not played");
  group.parts.emplace_back(which, part);
  return ncclSuccess;
}

/// Submits the group as NCCL's own thread does; the stream belongs to NCCL until then.
void post_group() {
  for (const auto& [communicator, part] : std::exchange(group.parts, {})) {
    if (communicator->parts.empty()) communicator->stream->keep_for_library();
    communicator->parts.push_back(part);
    communicator->phase = ncclComm::Phase::connects;
  }
}

/// Cleaning up waits for the device, and so for everything that occupies it. The group waits for
/// that too.
void forget(const std::vector<ncclComm_t>& aborted) {
  for (const auto* one : aborted)
    if (nccl_world().is_occupied(one->device))
      end_by_misuse("a communicator is aborted while another one occupies the device");
  for (auto* one : aborted) delete one;
}

std::uint64_t host_id() {
  static const auto id = [] {  // Read once, as NCCL does.
    const char* name = std::getenv("NCCL_HOSTID");
    return std::hash<std::string_view>()(name ? name : "this machine");
  }();
  return id;
}

}  // namespace

std::size_t cuda_on_cores::communicators_left() {
  const std::lock_guard lock(nccl_world().mutex);
  return nccl_world().alive.size();
}

std::uint64_t cuda_on_cores::operations_put() {
  const std::lock_guard lock(nccl_world().mutex);
  return nccl_world().operations;
}

void cuda_on_cores::let_next_go_wrong() {
  const std::lock_guard lock(nccl_world().mutex);
  nccl_world().next_goes_wrong = true;
}

const char* ncclGetErrorString(ncclResult_t outcome) {
  switch (outcome) {
    case ncclSuccess:
      return "all is well";
    case ncclUnhandledCudaError:
      return "CUDA refused something";
    case ncclSystemError:
      return "the system refused something";
    case ncclInternalError:
      return "a mistake of its own";
    case ncclInvalidArgument:
      return "an argument is invalid";
    case ncclInvalidUsage:
      return "it is used as it must not be";
    case ncclRemoteError:
      return "another member is gone";
    case ncclInProgress:
      return "under way";
  }
  return "what nobody knows";
}

/// Returns the last error of any thread.
const char* ncclGetLastError(ncclComm_t) {
  thread_local char copy[256];
  const std::lock_guard lock(nccl_world().mutex);
  std::snprintf(copy, sizeof copy, "%s", nccl_world().last_error.c_str());
  return copy;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<unsigned> made = 0;
  *id = {};
  std::snprintf(
      id->internal, sizeof id->internal, "%s%d-%u-%lld", prefix.data(), getpid(), ++made,
      static_cast<long long>(std::chrono::steady_clock::now().time_since_epoch().count()));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int members, ncclUniqueId id,
                                    int member, ncclConfig_t* config) {
  const std::lock_guard lock(nccl_world().mutex);
  *communicator = nullptr;
  const std::string name(id.internal, strnlen(id.internal, sizeof id.internal));
  if (config->magic != ncclConfig_t NCCL_CONFIG_INITIALIZER.magic || config->minCTAs < 1 ||
      config->maxCTAs < config->minCTAs)
    return refuse(ncclInvalidArgument, "this configuration was not made as it should be");
  if (config->blocking != 0) end_by_misuse("communicators that block are not played");
  if (!name.starts_with(prefix) || members < 1 || member < 0 || member >= members)
    return refuse(ncclInvalidArgument, "there is no such communicator, or no such member");
  enter(cuda_on_cores::current_device());
  Introduction own{.member = member, .of = members, .host = host_id(), .bus = {}};
  (void)cudaDeviceGetPCIBusId(own.bus.data(), static_cast<int>(own.bus.size()),
                              cuda_on_cores::current_device());
  *communicator = new ncclComm(name, own);
  nccl_world().alive.insert(*communicator);
  if (!std::exchange(nccl_world().next_goes_wrong, false)) return ncclInProgress;
  (*communicator)->fail(ncclSystemError, "the system has no sockets left");
  return ncclSystemError;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  const std::lock_guard lock(nccl_world().mutex);
  auto& asked = alive(communicator);
  asked.go_on();
  *state = asked.phase == ncclComm::Phase::failed    ? asked.failure
           : asked.phase == ncclComm::Phase::settled ? ncclSuccess
                                                     : ncclInProgress;
  return ncclSuccess;
}

/// Removes the communicator's work from the queue. Work that is not in it yet either gets there or
/// never does.
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  const std::lock_guard lock(nccl_world().mutex);
  auto& aborted = alive(communicator);
  aborted.membership->is_aborted = true;
  aborted.membership->wires.hang_up();
  if (aborted.stream) aborted.stream->let_go();
  if (!aborted.parts.empty() && nccl_world().random() % 2 == 0) aborted.put_into_stream();
  nccl_world().alive.erase(communicator);
  if (group.depth > 0)
    group.aborted.push_back(communicator);
  else
    forget({communicator});
  return ncclInProgress;
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  const std::lock_guard lock(nccl_world().mutex);
  if (group.depth == 0) end_by_misuse("a group ends that was not begun");
  if (--group.depth > 0) return ncclSuccess;
  std::erase_if(nccl_world().groups,
                [](const auto& entry) { return entry.second == std::this_thread::get_id(); });
  if (group.error != ncclSuccess) {
    group.parts.clear();
    return std::exchange(group.error, ncclSuccess);
  }
  const bool blocks = group.parts.empty() || !group.aborted.empty();
  post_group();
  forget(std::exchange(group.aborted, {}));
  return blocks ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclSend(const void* memory, std::size_t count, ncclDataType_t type, int to,
                      ncclComm_t communicator, cudaStream_t stream) {
  if (type != ncclInt8) end_by_misuse("nothing but bytes is played");
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(memory));
  return add(communicator, {Part::Kind::send, to, bytes, count}, stream);
}

ncclResult_t ncclRecv(void* memory, std::size_t count, ncclDataType_t type, int from,
                      ncclComm_t communicator, cudaStream_t stream) {
  if (type != ncclInt8) end_by_misuse("nothing but bytes is played");
  return add(communicator, {Part::Kind::receive, from, static_cast<std::byte*>(memory), count},
             stream);
}

ncclResult_t ncclReduce(const void* memory, void* sum, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t communicator,
                        cudaStream_t stream) {
  if (type != ncclFloat32 || operation != ncclSum || memory != sum)
    end_by_misuse("nothing but sums of floats in their place is played");
  return add(communicator,
             {Part::Kind::reduce, root, static_cast<std::byte*>(sum), count * sizeof(float)},
             stream);
}

namespace troupe::transport {

Result<const NcclLibrary*> nccl_library() {
  static const NcclLibrary all = {
      .version = 22809,
      .text_of = ncclGetErrorString,
      .last_error = ncclGetLastError,
      .unique_id = ncclGetUniqueId,
      .init = ncclCommInitRankConfig,
      .state_of = ncclCommGetAsyncError,
      .abort = ncclCommAbort,
      .begin_group = ncclGroupStart,
      .end_group = ncclGroupEnd,
      .send = ncclSend,
      .receive = ncclRecv,
      .reduce = ncclReduce,
  };
  return &all;
}

}  // namespace troupe::transport
