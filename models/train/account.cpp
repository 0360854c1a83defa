#include "models/train/account.h"

#include <sys/mman.h>

#include "kernels/rehearsed/device.h"

namespace troupe::models {
namespace {

/// Addresses without memory: the system allocates a page only when somebody writes to it.
class AddressSpace final : public MemorySource {
 public:
  explicit AddressSpace(MemoryPlace place = {}) : place_(place) {}

  void* allocate(std::size_t bytes) override {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
  }
  void release(void* memory, std::size_t bytes) override { munmap(memory, bytes); }
  MemoryPlace place() const override { return place_; }

 private:
  MemoryPlace place_;
};

std::unique_ptr<Device> device_of(Computer computer, std::vector<kernels::KernelCall>* calls) {
  if (computer == Computer::cores) return nullptr;
  return kernels::rehearsed_device(std::make_unique<AddressSpace>(), calls);
}

}  // namespace

Account::Account(Computer computer, std::vector<kernels::KernelCall>* calls)
    : device(device_of(computer, calls)),
      pool(std::make_unique<AddressSpace>(device ? device->place() : MemoryPlace())),
      stream(device ? Stream::rehearsal(pool, *device) : Stream::rehearsal(pool)) {}

Error too_few_addresses() {
  return Error{
      "there are not enough addresses to plan a model of this size; raise the limit of virtual "
      "memory (ulimit -v)"};
}

Shape with_batch(std::int64_t micro, const Shape& sample) {
  Shape shape{micro};
  for (const auto size : sample) shape.append(size);
  return shape;
}

}  // namespace troupe::models
