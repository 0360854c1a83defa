// Of the played device alone: that it finds out who reads or writes its memory without it.

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>

#include "kernels/copy.h"
#include "same.h"

namespace troupe::kernels {
namespace {

/// The signal that ends a process which does so; 0 where it lives.
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

TEST_CASE("a host that touches memory of the played device ends there") {
  const auto device = open_device();
  MemoryPool memory(device_memory());
  Stream stream(memory, *device);
  Tensor x = stream.make({8});
  CHECK(signal_that_ends([&] { x.f32()[0] = 1; }) == SIGSEGV);
  CHECK(signal_that_ends([&] {
          const volatile float* first = x.f32();
          (void)*first;
        }) == SIGSEGV);
  // After a kernel it is as before.
  fill(stream, 2, x.f32(), 8);
  stream.wait();
  CHECK(signal_that_ends([&] { x.f32()[0] = 1; }) == SIGSEGV);
}

TEST_CASE("a kernel of the played device that is given memory of the host ends there") {
  const auto device = open_device();
  MemoryPool memory(device_memory());
  Stream stream(memory, *device);
  Tensor here = Tensor::make(stream.host_memory(), {8});
  CHECK(signal_that_ends([&] {
          fill(stream, 2, here.f32(), 8);
          stream.wait();
        }) == SIGSEGV);
}

TEST_CASE("what nobody has written on the played device is no number") {
  const auto device = open_device();
  MemoryPool memory(device_memory());
  Stream stream(memory, *device);
  const Tensor here = stream.to_host(stream.make({8}));
  stream.wait();
  for (const float number : here.numbers<float>()) CHECK(std::isnan(number));
}

}  // namespace
}  // namespace troupe::kernels
