#include "kernels/cuda/machine/arena.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/free_ranges.h"
#include "kernels/cuda/machine/driver.h"

namespace troupe::kernels::cuda {
namespace {

// The alignment of blocks: a cache line of the GPU, and the best size for copies.
constexpr std::size_t alignment = 512;
// The granules mapped at once, if there is room: mapping is slow and waits for the GPU.
constexpr std::size_t granules_at_once = 32;

std::size_t rounded_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

class Arena final : public MemorySource, public ExportedMemory {
 public:
  Arena(int number, std::span<const int> others, const Driver& driver)
      : number_(number), readers_{number}, driver_(driver) {
    for (const int other : others) {
      int reaches = 0;
      if (other != number) (void)cudaDeviceCanAccessPeer(&reaches, other, number);
      if (reaches != 0) readers_.push_back(other);
    }
  }
  ~Arena() override {
    for (const auto& [offset, piece] : pieces_) {
      (void)driver_.unmap(base_ + offset, piece.bytes);
      (void)driver_.release(piece.handle);
    }
    if (base_ != 0) (void)driver_.unreserve(base_, reserved_);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Status open() {
    const auto room = room_of(number_);
    if (!room) return room.error();
    if (!driver_.can(number_, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
      return Error{"it has no virtual memory of its own; wanted a GPU and a driver that do"};
    kind_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    kind_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    kind_.location.id = number_;
    if (driver_.can(number_, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
      kind_.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (driver_.can(number_, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED))
      kind_.allocFlags.gpuDirectRDMACapable = 1;
    auto said = driver_.granularity(&granule_, &kind_, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    reserved_ = said == CUDA_SUCCESS ? rounded_up(room->total, granule_) : 0;
    if (said == CUDA_SUCCESS) said = driver_.reserve(&base_, reserved_, 0, 0, 0);
    if (said == CUDA_SUCCESS) return Done{};
    return driver_error("no addresses for its memory", said);
  }

  // The two kinds grow from opposite ends, because blocks of unlike lifetimes leave holes.
  void* allocate(std::size_t bytes) override { return take(bytes, &FreeRanges::take_highest); }
  void* allocate_lasting(std::size_t bytes) override { return take(bytes, &FreeRanges::take); }

  void release(void* memory, std::size_t bytes) override {
    free_.give(std::bit_cast<CUdeviceptr>(memory) - base_, rounded_up(bytes, alignment));
  }

  MemoryPlace place() const override { return {number_}; }

  std::optional<Room> room() const override {
    auto room = room_of(number_);
    if (!room) return {};
    room->free += free_.total();
    return *room;
  }

  bool can_be_exported() const {
    return kind_.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  }
  std::size_t reserved() const override { return reserved_; }
  std::size_t offset_of(const std::byte* address) const override {
    return std::bit_cast<CUdeviceptr>(address) - base_;
  }
  MemoryRange piece_at(std::size_t offset) const override {
    const auto [begin, piece] = find_piece(offset);
    return {begin, piece.bytes};
  }
  Result<Descriptor> export_piece(std::size_t offset) const override {
    int file = -1;
    const auto said = driver_.export_handle(&file, find_piece(offset).second.handle,
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (said != CUDA_SUCCESS) return driver_error("a GPU's memory for other processes", said);
    return Descriptor(file);
  }

 private:
  struct Piece {
    CUmemGenericAllocationHandle handle = 0;
    std::size_t bytes = 0;
  };

  void* take(std::size_t bytes, std::optional<std::size_t> (FreeRanges::*take)(std::size_t)) {
    const std::size_t size = rounded_up(bytes, alignment);
    if (cudaSetDevice(number_) != cudaSuccess) return nullptr;
    auto begin = (free_.*take)(size);
    if (!begin && grow(size)) begin = (free_.*take)(size);
    return begin ? std::bit_cast<void*>(base_ + *begin) : nullptr;
  }

  /// Maps enough memory at the end for a block of this size.
  bool grow(std::size_t size) {
    std::size_t there = 0;
    if (const auto last = free_.last(); last.begin + last.length == mapped_) there = last.length;
    const std::size_t needed = rounded_up(size - there, granule_);
    const std::size_t left = reserved_ - mapped_;
    if (needed > left) return false;
    const std::size_t wanted = std::clamp(granules_at_once * granule_, needed, left);
    return map(wanted) || (wanted > needed && map(needed));
  }

  bool map(std::size_t bytes) {
    Piece piece{.bytes = bytes};
    if (driver_.create(&piece.handle, bytes, &kind_, 0) != CUDA_SUCCESS) return false;
    const auto map_for = [&](std::span<const int> readers) {
      return driver_.map_for(readers, base_ + mapped_, bytes, piece.handle);
    };
    bool is_mapped = map_for(readers_);
    if (!is_mapped && readers_.size() > 1) {
      // If the other GPUs may not map it after all, their copies go through the host.
      readers_ = {number_};
      is_mapped = map_for(readers_);
    }
    if (!is_mapped) {
      (void)driver_.release(piece.handle);
      return false;
    }
    {
      const std::lock_guard lock(mutex_);
      pieces_.emplace(mapped_, piece);
    }
    free_.give(std::exchange(mapped_, mapped_ + bytes), bytes);
    return true;
  }

  std::pair<std::size_t, Piece> find_piece(std::size_t offset) const {
    const std::lock_guard lock(mutex_);
    const auto next = pieces_.upper_bound(offset);
    assert(next != pieces_.begin() && "nothing of this memory lies there");
    return *std::prev(next);
  }

  int number_;
  std::vector<int> readers_;
  Driver driver_;
  CUmemAllocationProp kind_ = {};
  std::size_t granule_ = 0;
  CUdeviceptr base_ = 0;
  std::size_t reserved_ = 0;
  std::size_t mapped_ = 0;  // From the base.
  FreeRanges free_;         // Mapped and free, as offsets from the base.

  mutable std::mutex mutex_;             // Exports run on another thread.
  std::map<std::size_t, Piece> pieces_;  // Keyed by offset from the base.
};

/// Selects its GPU before each call: on a thread without a GPU, CUDA would make a context of some
/// hundred MiB on the first one.
class PinnedMemory final : public MemorySource {
 public:
  explicit PinnedMemory(int number) : number_(number) {}

  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    if (cudaSetDevice(number_) != cudaSuccess) return nullptr;
    return cudaHostAlloc(&memory, bytes, cudaHostAllocPortable) == cudaSuccess ? memory : nullptr;
  }
  void release(void* memory, std::size_t) override {
    (void)cudaSetDevice(number_);
    (void)cudaFreeHost(memory);
  }

 private:
  int number_;
};

}  // namespace

Result<std::unique_ptr<MemorySource>> device_memory(int number, std::span<const int> others) {
  const auto place = "the memory of GPU " + std::to_string(number);
  const auto driver = Driver::find();
  if (!driver) return within(place, driver.error());
  auto arena = std::make_unique<Arena>(number, others, *driver);
  if (auto opened = arena->open(); !opened) return within(place, opened.error());
  return std::unique_ptr<MemorySource>(std::move(arena));
}

Result<ExportedMemory*> exported(MemorySource& memory) {
  auto& arena = static_cast<Arena&>(memory);
  if (arena.can_be_exported()) return &arena;
  return Error{"the GPU's memory cannot be given to other processes as files"};
}

Result<Room> room_of(int number) {
  Room room;
  auto outcome = cudaSetDevice(number);
  if (outcome == cudaSuccess) outcome = cudaMemGetInfo(&room.free, &room.total);
  if (outcome != cudaSuccess) return Error{cudaGetErrorString(outcome)};
  return room;
}

Result<Room> room_beforehand(int number) {
  const auto driver = Driver::find();
  if (!driver) return driver.error();
  const bool was_used = driver->is_used(number);
  auto room = room_of(number);
  int current = -1;
  if (!was_used && cudaGetDevice(&current) == cudaSuccess && current == number)
    (void)cudaDeviceReset();
  return room;
}

std::unique_ptr<MemorySource> pinned_memory(int number) {
  return std::make_unique<PinnedMemory>(number);
}

}  // namespace troupe::kernels::cuda
