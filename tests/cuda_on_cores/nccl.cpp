#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda_on_cores/nccl_operation.h"
#include "tests/cuda_on_cores/nccl_wires.h"
#include "transport/nccl_library.h"

using cuda_on_cores::end_by_misuse;
using cuda_on_cores::Introduction;
using cuda_on_cores::Membership;
using cuda_on_cores::Operation;
using cuda_on_cores::Part;

struct ncclComm {
  enum class Phase { meets, connects, settles, settled, failed };

  ncclComm(const std::string& name, const Introduction& own)
      : own(own), membership(std::make_shared<Membership>(name, own)) {}

  const Introduction own;
  const int device = cuda_on_cores::current_device();
  const std::shared_ptr<Membership> membership;
  Phase phase = Phase::meets;
  ncclResult_t failure = ncclSuccess;
  unsigned looks_left = 0;    // So often it is asked before it has settled.
  bool is_connected = false;  // As from its first operation on.
  cudaStream_t stream = nullptr;
  std::vector<Part> parts;  // Not in the stream yet.
};

namespace {

constexpr std::string_view prefix = "troupe-played-nccl-";
constexpr unsigned most_looks = 3;

/// Of all threads.
struct World {
  std::mutex mutex;
  std::minstd_rand random{1};
  std::set<ncclComm_t> alive;
  std::map<int, std::thread::id> groups;  // Which thread has one, by device.
  std::string last_error;
  std::uint64_t operations = 0;
};
/// Outlives whoever ends late.
World& world() {
  static auto* world = new World;
  return *world;
}

/// Of this thread.
struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<std::pair<ncclComm_t, Part>> parts;
  std::vector<ncclComm_t> aborted;
};
thread_local Group group;

ncclResult_t refuse(ncclResult_t why, const std::string& text) {
  world().last_error = text;
  if (group.depth > 0) group.error = why;
  return why;
}

/// NCCL wants one caller at a time for each device.
void enter(int device) {
  const auto found = world().groups.find(device);
  if (found != world().groups.end() && found->second != std::this_thread::get_id())
    end_by_misuse("one thread calls it for a device while another one has a group there");
  if (group.depth > 0) world().groups[device] = std::this_thread::get_id();
}

ncclComm& alive(ncclComm_t communicator) {
  if (!world().alive.contains(communicator)) end_by_misuse("a communicator is gone or none");
  enter(communicator->device);
  return *communicator;
}

void settle_later(ncclComm& communicator) {
  communicator.phase = ncclComm::Phase::settles;
  communicator.looks_left = static_cast<unsigned>(world().random()) % (most_looks + 1);
}

void fail(ncclComm& communicator, ncclResult_t why, const std::string& text) {
  communicator.phase = ncclComm::Phase::failed;
  communicator.failure = why;
  world().last_error = text;
}

/// What a member sends to itself it receives in the same group.
bool has_unpaired(const ncclComm& communicator) {
  std::vector<std::size_t> sends, receives;
  for (const auto& part : communicator.parts) {
    if (part.peer != communicator.own.member || part.kind == Part::Kind::reduce) continue;
    (part.kind == Part::Kind::send ? sends : receives).push_back(part.bytes);
  }
  return sends != receives;
}

void put_into_stream(ncclComm& communicator) {
  auto operation =
      std::make_shared<Operation>(communicator.membership, std::move(communicator.parts));
  communicator.parts.clear();
  ++world().operations;
  if (!communicator.stream->put_until([operation] { return operation->go_on(); }))
    fail(communicator, ncclUnhandledCudaError, "a stream takes nothing");
}

/// By what nobody has met yet.
bool is_occupied(int device) {
  return std::ranges::any_of(world().alive, [&](const auto* one) {
    return one->device == device && one->membership->in_queue > 0;
  });
}

/// Somebody asks: so far it has come by itself. To begin a communicator, and to connect it by its
/// first operation, takes memory of the device and waits for whatever occupies that.
void go_on(ncclComm& communicator) {
  using Phase = ncclComm::Phase;
  auto& wires = communicator.membership->wires;
  if (communicator.phase != Phase::failed && wires.has_lost_one())
    fail(communicator, ncclRemoteError, "a member is gone");
  switch (communicator.phase) {
    case Phase::meets:
      if (is_occupied(communicator.device) || !wires.meet()) return;
      if (const int twin = wires.twin(); twin >= 0)
        return fail(communicator, ncclInvalidUsage,
                    "Duplicate GPU detected : rank " + std::to_string(communicator.own.member) +
                        " and rank " + std::to_string(twin) + " both on CUDA device " +
                        communicator.own.bus.data());
      return settle_later(communicator);
    case Phase::connects:
      if (has_unpaired(communicator))
        return fail(communicator, ncclInvalidUsage, "a send to oneself is not received");
      if (!communicator.is_connected && !is_occupied(communicator.device))
        communicator.is_connected = wires.connect();
      if (!communicator.is_connected) return;
      settle_later(communicator);
      return put_into_stream(communicator);
    case Phase::settles:
      if (communicator.looks_left-- > 0) return;
      if (communicator.stream) communicator.stream->let_go();
      communicator.phase = Phase::settled;
      return;
    case Phase::settled:
    case Phase::failed:
      return;
  }
}

ncclResult_t add(ncclComm_t which, const Part& part, cudaStream_t stream) {
  const std::lock_guard lock(world().mutex);
  auto& communicator = alive(which);
  if (communicator.phase == ncclComm::Phase::failed)
    return refuse(communicator.failure, world().last_error);
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

/// What was begun is handed over by NCCL's own thread: the stream is NCCL's until then.
void post_group() {
  for (const auto& [communicator, part] : std::exchange(group.parts, {})) {
    if (communicator->parts.empty()) communicator->stream->keep_for_library();
    communicator->parts.push_back(part);
    communicator->phase = ncclComm::Phase::connects;
  }
}

/// To clean up waits for the device, and so for all that occupy it.
void forget(const std::vector<ncclComm_t>& aborted) {
  for (const auto* one : aborted)
    if (is_occupied(one->device))
      end_by_misuse("a communicator is aborted while another one occupies the device");
  for (auto* one : aborted) delete one;
}

std::uint64_t host_id() {
  static const auto id = [] {  // Looked at once, as NCCL does.
    const char* name = std::getenv("NCCL_HOSTID");
    return std::hash<std::string_view>()(name ? name : "this machine");
  }();
  return id;
}

}  // namespace

std::size_t cuda_on_cores::communicators_left() {
  const std::lock_guard lock(world().mutex);
  return world().alive.size();
}

std::uint64_t cuda_on_cores::operations_put() {
  const std::lock_guard lock(world().mutex);
  return world().operations;
}

const char* ncclGetErrorString(ncclResult_t outcome) {
  switch (outcome) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

/// One word of all threads.
const char* ncclGetLastError(ncclComm_t) {
  thread_local char copy[256];
  const std::lock_guard lock(world().mutex);
  std::snprintf(copy, sizeof copy, "%s", world().last_error.c_str());
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
  const std::lock_guard lock(world().mutex);
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
  world().alive.insert(*communicator);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  const std::lock_guard lock(world().mutex);
  auto& asked = alive(communicator);
  go_on(asked);
  *state = asked.phase == ncclComm::Phase::failed    ? asked.failure
           : asked.phase == ncclComm::Phase::settled ? ncclSuccess
                                                     : ncclInProgress;
  return ncclSuccess;
}

/// The device lets go of what is in its queue, and what is not in it yet either gets there or never
/// does.
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  const std::lock_guard lock(world().mutex);
  auto& aborted = alive(communicator);
  aborted.membership->is_aborted = true;
  aborted.membership->wires.hang_up();
  if (aborted.stream) aborted.stream->let_go();
  if (!aborted.parts.empty() && world().random() % 2 == 0) put_into_stream(aborted);
  world().alive.erase(communicator);
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
  const std::lock_guard lock(world().mutex);
  if (group.depth == 0) end_by_misuse("a group ends that was not begun");
  if (--group.depth > 0) return ncclSuccess;
  std::erase_if(world().groups,
                [](const auto& entry) { return entry.second == std::this_thread::get_id(); });
  if (group.error != ncclSuccess) {
    group.parts.clear();
    return std::exchange(group.error, ncclSuccess);
  }
  const bool is_empty = group.parts.empty() && group.aborted.empty();
  post_group();
  forget(std::exchange(group.aborted, {}));
  return is_empty ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclSend(const void* memory, std::size_t count, ncclDataType_t type, int to,
                      ncclComm_t communicator, cudaStream_t stream) {
  if (type != ncclInt8) return refuse(ncclInvalidArgument, "bytes alone are played");
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(memory));
  return add(communicator, {Part::Kind::send, to, bytes, count}, stream);
}

ncclResult_t ncclRecv(void* memory, std::size_t count, ncclDataType_t type, int from,
                      ncclComm_t communicator, cudaStream_t stream) {
  if (type != ncclInt8) return refuse(ncclInvalidArgument, "bytes alone are played");
  return add(communicator, {Part::Kind::receive, from, static_cast<std::byte*>(memory), count},
             stream);
}

ncclResult_t ncclReduce(const void* memory, void* sum, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t communicator,
                        cudaStream_t stream) {
  if (type != ncclFloat32 || operation != ncclSum || memory != sum)
    return refuse(ncclInvalidArgument, "sums of floats in their place alone are played");
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
