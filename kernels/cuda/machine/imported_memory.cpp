#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include "kernels/cuda/machine/arena.h"
#include "kernels/cuda/machine/driver.h"

namespace troupe::kernels::cuda {
namespace {

class Imported final : public ImportedMemory {
 public:
  Imported(int number, const Driver& driver) : number_(number), driver_(driver) {}
  ~Imported() override {
    for (const auto& [offset, bytes] : pieces_) (void)driver_.unmap(base_ + offset, bytes);
    if (base_ != 0) (void)driver_.unreserve(base_, reserved_);
  }
  Imported(const Imported&) = delete;
  Imported& operator=(const Imported&) = delete;

  Status open(std::size_t reserved) {
    reserved_ = reserved;
    const auto said = driver_.reserve(&base_, reserved, 0, 0, 0);
    if (said == CUDA_SUCCESS) return Done{};
    return driver_error("no addresses for another process' memory", said);
  }

  Status add(const MemoryRange& piece, const Descriptor& file) override {
    if (!is_free(piece))
      return Error{"found a piece of memory at " + std::to_string(piece.offset) + " of " +
                   std::to_string(piece.bytes) + " bytes, which is none of " +
                   std::to_string(reserved_) + " or is there already"};
    CUmemGenericAllocationHandle handle = 0;
    const auto said = driver_.import_handle(
        &handle, std::bit_cast<void*>(static_cast<std::intptr_t>(file.number())),
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (said != CUDA_SUCCESS) return driver_error("another process' memory", said);
    const bool mapped = driver_.map_for({&number_, 1}, base_ + piece.offset, piece.bytes, handle);
    // The mapping keeps the memory alive.
    (void)driver_.release(handle);
    if (!mapped) return Error{"another process' memory cannot be mapped for this GPU"};
    pieces_.emplace(piece.offset, piece.bytes);
    return Done{};
  }

  const std::byte* at(const MemoryRange& range) const override {
    if (range.bytes > reserved_ || range.offset > reserved_ - range.bytes) return nullptr;
    const auto end = range.offset + range.bytes;
    auto known = range.offset;  // The end of the mapped part so far.
    auto piece = pieces_.upper_bound(range.offset);
    if (piece == pieces_.begin()) return nullptr;
    for (--piece; piece != pieces_.end() && piece->first <= known && known < end; ++piece)
      known = std::max(known, piece->first + piece->second);
    return known < end ? nullptr : std::bit_cast<const std::byte*>(base_ + range.offset);
  }

 private:
  bool is_free(const MemoryRange& piece) const {
    if (piece.bytes == 0 || piece.bytes > reserved_ || piece.offset > reserved_ - piece.bytes)
      return false;
    const auto next = pieces_.lower_bound(piece.offset);
    if (next != pieces_.end() && next->first < piece.offset + piece.bytes) return false;
    if (next == pieces_.begin()) return true;
    const auto last = std::prev(next);
    return last->first + last->second <= piece.offset;
  }

  int number_;
  Driver driver_;
  CUdeviceptr base_ = 0;
  std::size_t reserved_ = 0;
  std::map<std::size_t, std::size_t> pieces_;  // From offset to bytes.
};

}  // namespace

Result<std::unique_ptr<ImportedMemory>> import_memory(int number, std::size_t reserved) {
  const auto driver = Driver::find();
  if (!driver) return driver.error();
  if (cudaSetDevice(number) != cudaSuccess)
    return Error{"GPU " + std::to_string(number) + " is gone"};
  auto memory = std::make_unique<Imported>(number, *driver);
  if (auto opened = memory->open(reserved); !opened) return opened.error();
  return std::unique_ptr<ImportedMemory>(std::move(memory));
}

}  // namespace troupe::kernels::cuda
