// Memory of several GPUs. The simulated device has two of them and tells who uses what.

#include <array>
#include <cstdlib>
#include <set>
#include <thread>

#include "core/memory/stream.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/machine/arena.h"
#include "tests/catch.h"
#include "tests/cuda_on_cores/driver.h"

namespace troupe::kernels {
namespace {

TEST_CASE("pinned memory makes a context on its own GPU only, on whatever thread") {
  for (const int number : {1, 0}) {
    cuda_on_cores::set_current_device(number);
    cuda_on_cores::leave_current_device();
  }
  REQUIRE(cuda_on_cores::gpus_in_use().empty());
  const auto memory = cuda::pinned_memory(1);
  void* block = nullptr;
  std::thread([&] { block = memory->allocate(64); }).join();
  REQUIRE(block);
  CHECK(cuda_on_cores::gpus_in_use() == std::set<int>{1});
  std::thread([&] { memory->release(block, 64); }).join();
  CHECK(cuda_on_cores::gpus_in_use() == std::set<int>{1});
}

/// Gives this process two GPUs that reach each other.
struct TwoGpus {
  TwoGpus() {
    REQUIRE(::setenv("CUDA_ON_CORES_GPUS", "2", 1) == 0);
    REQUIRE(::setenv("CUDA_ON_CORES_PEERS", "1", 1) == 0);
  }
  ~TwoGpus() {
    cuda_on_cores::refuse_peers(false);
    (void)::unsetenv("CUDA_ON_CORES_GPUS");
    (void)::unsetenv("CUDA_ON_CORES_PEERS");
  }
  TwoGpus(const TwoGpus&) = delete;
  TwoGpus& operator=(const TwoGpus&) = delete;
};

TEST_CASE("a block that the other GPU may read only in part is copied through the host") {
  const TwoGpus both;
  const auto reader = cuda::open_device(1);
  REQUIRE(reader.ok());
  auto mine = cuda::device_memory(1);
  REQUIRE(mine.ok());
  const auto theirs = cuda::device_memory(0, std::array{0, 1});
  REQUIRE(theirs.ok());
  MemoryPool pool(std::move(*mine));
  (*reader)->enter();
  Stream stream(pool, **reader);
  const auto copy_through_host = [&](std::byte* from, std::int64_t bytes) {
    Tensor to = stream.make({bytes / 4});
    const auto before = cuda_on_cores::staged_copies();
    (*reader)->copy(from, {0}, to.raw(), to.bytes());
    stream.wait();
    return cuda_on_cores::staged_copies() > before;
  };
  // The first block fills half of a piece; the second one reaches into the next piece.
  constexpr std::int64_t half = std::int64_t{1} << 20;
  auto* first = static_cast<std::byte*>((*theirs)->allocate_lasting(half));
  REQUIRE(first);
  cuda_on_cores::refuse_peers(true);
  auto* second = static_cast<std::byte*>((*theirs)->allocate_lasting(2 * half));
  REQUIRE(second == first + half);
  CHECK_FALSE(copy_through_host(first, half));
  CHECK_FALSE(copy_through_host(second, half));
  CHECK(copy_through_host(second, 2 * half));
  CHECK(copy_through_host(second + half, half));
}

}  // namespace
}  // namespace troupe::kernels
