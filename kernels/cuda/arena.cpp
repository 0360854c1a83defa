#include "kernels/cuda/arena.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/free_ranges.h"

namespace troupe::kernels::cuda {
namespace {

// Of blocks: as much as a line of a GPU's caches, and what its copies like best.
constexpr std::size_t alignment = 512;
// What is mapped at once, where so much is left: mapping takes its time, and waits for the GPU.
constexpr std::size_t granules_at_once = 32;
// Those below are in drivers from this version of CUDA on.
constexpr unsigned cuda_version = 12000;

std::size_t rounded_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// Functions of the driver, found when the program runs: one that is linked to it does not start
/// where there is none.
struct Driver {
  decltype(&cuDeviceGet) device = nullptr;
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) unreserve = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;

  static Result<Driver> find() {
    Driver driver;
    std::string missing;
    const auto look_for = [&](const char* name, auto& function) {
      void* found = nullptr;
      cudaDriverEntryPointQueryResult state = cudaDriverEntryPointSymbolNotFound;
      const auto outcome =
          cudaGetDriverEntryPointByVersion(name, &found, cuda_version, cudaEnableDefault, &state);
      if (outcome != cudaSuccess || state != cudaDriverEntryPointSuccess || !found)
        missing = name;
      else
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    };
    look_for("cuDeviceGet", driver.device);
    look_for("cuDeviceGetAttribute", driver.attribute);
    look_for("cuMemGetAllocationGranularity", driver.granularity);
    look_for("cuMemAddressReserve", driver.reserve);
    look_for("cuMemAddressFree", driver.unreserve);
    look_for("cuMemCreate", driver.create);
    look_for("cuMemRelease", driver.release);
    look_for("cuMemMap", driver.map);
    look_for("cuMemUnmap", driver.unmap);
    look_for("cuMemSetAccess", driver.set_access);
    if (!missing.empty())
      return Error{"the driver has no " + missing + "; wanted one for CUDA 12 or later"};
    return driver;
  }

  bool can(int number, CUdevice_attribute what) const {
    CUdevice handle = 0;
    int yes = 0;
    return device(&handle, number) == CUDA_SUCCESS &&
           attribute(&yes, what, handle) == CUDA_SUCCESS && yes != 0;
  }
};

class Arena final : public MemorySource {
 public:
  Arena(int number, const Driver& driver) : number_(number), driver_(driver) {}
  ~Arena() override {
    for (const auto& [handle, at, bytes] : pieces_) {
      (void)driver_.unmap(at, bytes);
      (void)driver_.release(handle);
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
    return Error{"no addresses for its memory: the driver says " + std::to_string(said)};
  }

  void* allocate(std::size_t bytes) override {
    const std::size_t size = rounded_up(bytes, alignment);
    if (cudaSetDevice(number_) != cudaSuccess) return nullptr;
    auto begin = free_.take(size);
    if (!begin && grow(size)) begin = free_.take(size);
    return begin ? std::bit_cast<void*>(base_ + *begin) : nullptr;
  }

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

 private:
  struct Piece {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    std::size_t bytes;
  };

  /// Maps so much at the end that a block of this size has its place there.
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
    Piece piece{.handle = 0, .at = base_ + mapped_, .bytes = bytes};
    const auto& [handle, at, size] = piece;
    if (driver_.create(&piece.handle, size, &kind_, 0) != CUDA_SUCCESS) return false;
    if (driver_.map(at, size, 0, handle, 0) != CUDA_SUCCESS) {
      (void)driver_.release(handle);
      return false;
    }
    CUmemAccessDesc access = {};
    access.location = kind_.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (driver_.set_access(at, size, &access, 1) != CUDA_SUCCESS) {
      (void)driver_.unmap(at, size);
      (void)driver_.release(handle);
      return false;
    }
    pieces_.push_back(piece);
    free_.give(std::exchange(mapped_, mapped_ + bytes), bytes);
    return true;
  }

  int number_;
  Driver driver_;
  CUmemAllocationProp kind_ = {};
  std::size_t granule_ = 0;
  CUdeviceptr base_ = 0;
  std::size_t reserved_ = 0;
  std::size_t mapped_ = 0;  // From the base on.
  std::vector<Piece> pieces_;
  FreeRanges free_;  // Of what is mapped, from the base on.
};

class PinnedMemory final : public MemorySource {
 public:
  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    return cudaHostAlloc(&memory, bytes, cudaHostAllocPortable) == cudaSuccess ? memory : nullptr;
  }
  void release(void* memory, std::size_t) override { (void)cudaFreeHost(memory); }
};

}  // namespace

Result<std::unique_ptr<MemorySource>> device_memory(int number) {
  const auto place = "the memory of GPU " + std::to_string(number);
  const auto driver = Driver::find();
  if (!driver) return within(place, driver.error());
  auto arena = std::make_unique<Arena>(number, *driver);
  if (auto opened = arena->open(); !opened) return within(place, opened.error());
  return std::unique_ptr<MemorySource>(std::move(arena));
}

Result<Room> room_of(int number) {
  Room room;
  auto outcome = cudaSetDevice(number);
  if (outcome == cudaSuccess) outcome = cudaMemGetInfo(&room.free, &room.total);
  if (outcome != cudaSuccess) return Error{cudaGetErrorString(outcome)};
  return room;
}

std::unique_ptr<MemorySource> pinned_memory() { return std::make_unique<PinnedMemory>(); }

}  // namespace troupe::kernels::cuda
