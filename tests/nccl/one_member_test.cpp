// NCCL's library with one GPU and one process: a communicator of one member that sends to itself.
// This tests what any machine with a GPU can test: initialization, non-blocking calls, groups, the
// order within a stream, and aborting several communicators.

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "transport/links/nccl_fabric.h"
#include "transport/links/nccl_library.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

constexpr std::chrono::seconds limit{60};

/// Returns the library. Returns null and prints the reason if there is no GPU or library; then the
/// test is skipped.
const NcclLibrary* library() {
  if (auto fabric = open_nccl_fabric({}); !fabric) {
    WARN("skipped: " << fabric.error().text);
    return nullptr;
  }
  return *nccl_library();
}

/// A communicator of one member, with a stream and GPU memory.
struct Alone {
  explicit Alone(const NcclLibrary& nccl) : nccl(nccl) {
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaEventCreateWithFlags(&end, cudaEventDisableTiming) == cudaSuccess);
    REQUIRE(cudaMalloc(&from, bytes) == cudaSuccess);
    REQUIRE(cudaMalloc(&to, bytes) == cudaSuccess);
    ncclUniqueId id;
    REQUIRE(nccl.unique_id(&id) == ncclSuccess);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.minCTAs = config.maxCTAs = 1;
    const auto begun = nccl.init(&communicator, 1, id, 0, &config);
    REQUIRE((begun == ncclSuccess || begun == ncclInProgress));
    REQUIRE(settled() == ncclSuccess);
  }
  ~Alone() {
    (void)cudaStreamSynchronize(stream);
    (void)cudaFree(from);
    (void)cudaFree(to);
    (void)cudaEventDestroy(end);
    (void)cudaStreamDestroy(stream);
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

  ncclResult_t settled() const {
    auto state = ncclInProgress;
    const auto until = std::chrono::steady_clock::now() + limit;
    while (nccl.state_of(communicator, &state) == ncclSuccess && state == ncclInProgress &&
           std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    return state;
  }
  /// Sends bytes to itself and checks them.
  void exchange(std::byte value) {
    const std::vector<std::byte> wanted(bytes, value);
    std::vector<std::byte> got(bytes);
    REQUIRE(cudaMemcpyAsync(from, wanted.data(), bytes, cudaMemcpyDefault, stream) == cudaSuccess);
    REQUIRE(nccl.begin_group() == ncclSuccess);
    CHECK(nccl.send(from, bytes, ncclInt8, 0, communicator, stream) == ncclSuccess);
    CHECK(nccl.receive(to, bytes, ncclInt8, 0, communicator, stream) == ncclSuccess);
    const auto ended = nccl.end_group();
    CHECK((ended == ncclSuccess || ended == ncclInProgress));
    REQUIRE(settled() == ncclSuccess);
    REQUIRE(cudaMemcpyAsync(got.data(), to, bytes, cudaMemcpyDefault, stream) == cudaSuccess);
    REQUIRE(cudaEventRecord(end, stream) == cudaSuccess);
    const auto until = std::chrono::steady_clock::now() + limit;
    while (cudaEventQuery(end) == cudaErrorNotReady && std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    REQUIRE(cudaEventQuery(end) == cudaSuccess);
    CHECK((got == wanted));
  }

  static constexpr std::size_t bytes = std::size_t{3} << 20;
  const NcclLibrary& nccl;
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t end = nullptr;
  void *from = nullptr, *to = nullptr;
};

void abort_all(const NcclLibrary& nccl, const std::vector<const Alone*>& all) {
  REQUIRE(nccl.begin_group() == ncclSuccess);
  for (const auto* one : all) {
    const auto aborted = nccl.abort(one->communicator);
    CHECK((aborted == ncclSuccess || aborted == ncclInProgress));
  }
  const auto ended = nccl.end_group();
  CHECK((ended == ncclSuccess || ended == ncclInProgress));
}

}  // namespace

TEST_CASE("a communicator of one member sends to itself", "[nccl]") {
  const auto* nccl = library();
  if (!nccl) return;
  Alone alone(*nccl);
  for (int i = 1; i <= 3; ++i) alone.exchange(std::byte(i));
  abort_all(*nccl, {&alone});
}

TEST_CASE("two communicators of a GPU take turns and are aborted in one group", "[nccl]") {
  const auto* nccl = library();
  if (!nccl) return;
  Alone one(*nccl), other(*nccl);
  for (int i = 1; i <= 3; ++i) {
    one.exchange(std::byte(i));
    other.exchange(std::byte(i + 100));
  }
  abort_all(*nccl, {&one, &other});
}

TEST_CASE("a receive from oneself without a send is an error", "[nccl]") {
  const auto* nccl = library();
  if (!nccl) return;
  Alone alone(*nccl);
  REQUIRE(nccl->begin_group() == ncclSuccess);
  CHECK(nccl->receive(alone.to, 8, ncclInt8, 0, alone.communicator, alone.stream) == ncclSuccess);
  const auto ended = nccl->end_group();
  CHECK((ended == ncclInProgress || ended == ncclInvalidUsage));
  CHECK(alone.settled() == ncclInvalidUsage);
  abort_all(*nccl, {&alone});
}
