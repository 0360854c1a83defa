// How many kernels operations on many tensors launch. The simulated device counts them.

#include <span>
#include <vector>

#include "kernels/steps.h"
#include "same.h"
#include "tests/cuda_on_cores/queue.h"

namespace troupe::kernels {
namespace {

TEST_CASE("the squares of a few tensors take one launch, and of many a few") {
  const auto device = open_device();
  MemoryPool memory(device_memory());
  Stream stream(memory, *device);
  const Tensor x = tensor(stream, numbers(1000, 1), {1000});
  Tensor sums = stream.make({300}, DType::f64);
  const auto launches = [&](std::size_t tensors) {
    const std::vector<std::span<const float>> all(tensors, {x.f32(), 1000});
    const auto before = cuda_on_cores::kernels_put();
    squares_of_blocks(stream, all, sums.data<double>());
    stream.wait();
    return cuda_on_cores::kernels_put() - before;
  };
  CHECK(launches(0) == 0);
  CHECK(launches(1) == 1);
  CHECK(launches(128) == 1);
  CHECK(launches(129) == 2);
  CHECK(launches(300) == 3);
}

}  // namespace
}  // namespace troupe::kernels
