// The simulated device detects accesses to its memory from outside. Tests of the simulated device.

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>

#include "kernels/copy.h"
#include "same.h"

namespace troupe::kernels {
namespace {

/// Returns the signal that ends a process which runs `body`; 0 if the process survives.
template <class Body>
int signal_that_ends(Body body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    body();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_CASE("a host that touches memory of the simulated device is killed") {
  const auto device = open_device();
  MemoryPool memory(device_memory());
  Stream stream(memory, *device);
  Tensor x = stream.make({8});
  CHECK(signal_that_ends([&] { x.f32()[0] = 1; }) == SIGSEGV);
  CHECK(signal_that_ends([&] {
          const volatile float* first = x.f32();
          (void)*first;
        }) == SIGSEGV);
  // After a kernel the memory is protected again.
  fill(stream, 2, x.f32(), 8);
  stream.wait();
  CHECK(signal_that_ends([&] { x.f32()[0] = 1; }) == SIGSEGV);
}

TEST_CASE("a kernel of the simulated device that touches host memory is killed") {
  const auto device = open_device();
  MemoryPool memory(device_memory());
  Stream stream(memory, *device);
  Tensor here = Tensor::make(stream.host_memory(), {8});
  CHECK(signal_that_ends([&] {
          fill(stream, 2, here.f32(), 8);
          stream.wait();
        }) == SIGSEGV);
}

TEST_CASE("uninitialized memory of the simulated device is NaN") {
  const auto device = open_device();
  MemoryPool memory(device_memory());
  Stream stream(memory, *device);
  const Tensor here = stream.to_host(stream.make({8}));
  stream.wait();
  for (const float number : here.numbers<float>()) CHECK(std::isnan(number));
}

}  // namespace
}  // namespace troupe::kernels
