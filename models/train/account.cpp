#include "models/train/account.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "kernels/rehearsed/device.h"

namespace troupe::models {
namespace {

/// Addresses without memory: the system allocates a page only when somebody writes to it. It hands
/// out parts of large pieces, because a rehearsal takes hundreds of blocks and each call to the
/// system takes longer than a block is used.
class AddressSpace final : public MemorySource {
 public:
  explicit AddressSpace(MemoryPlace place = {}) : place_(place) {}
  ~AddressSpace() override {
    for (const auto& piece : pieces_) munmap(piece.data(), piece.size());
  }
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  void* allocate(std::size_t bytes) override {
    bytes = (bytes + page - 1) / page * page;
    if (bytes > left_.size() && !add_piece(std::max(bytes, least_piece))) return nullptr;
    void* memory = left_.data();
    left_ = left_.subspan(bytes);
    return memory;
  }
  /// The addresses are free when the account ends.
  void release(void* /*memory*/, std::size_t /*bytes*/) override {}
  MemoryPlace place() const override { return place_; }

 private:
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t least_piece = std::size_t{16} << 20;

  bool add_piece(std::size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    left_ = {static_cast<std::byte*>(memory), bytes};
    pieces_.push_back(left_);
    return true;
  }

  MemoryPlace place_;
  std::vector<std::span<std::byte>> pieces_;
  std::span<std::byte> left_;  // The rest of the newest piece.
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
