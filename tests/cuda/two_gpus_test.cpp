// On which GPUs memory makes contexts. The simulated device keeps count.

#include <set>
#include <thread>

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

}  // namespace
}  // namespace troupe::kernels
