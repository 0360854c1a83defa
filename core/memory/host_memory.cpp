#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>

#include "core/memory/free_ranges.h"
#include "core/memory/memory_pool.h"

namespace troupe {
namespace {

constexpr std::size_t alignment = 64;  // A cache line.
// Under AddressSanitizer each block is an allocation of its own, so that overruns are found.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool side_by_side = false;
constexpr std::size_t page = alignment;
constexpr std::size_t pages_at_once = 1;
#else
constexpr bool side_by_side = true;
constexpr std::size_t page = std::size_t{2} << 20;  // A huge page.
// The size of a piece. Only address space: a page takes memory when it is first written.
constexpr std::size_t pages_at_once = 32;
#endif

std::size_t rounded_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// Blocks of all sizes lie side by side in pieces made of huge pages. A 4 KiB page holds at most
/// one row of most tensors. A matrix product would need more pages than the TLB holds, and their
/// addresses would be scattered over the sets of the caches.
class HostMemory final : public MemorySource {
 public:
  ~HostMemory() override {
    for (const auto& [begin, piece] : pieces_) std::free(begin);
  }

  void* allocate(std::size_t bytes) override {
    const std::size_t size = rounded_up(bytes, alignment);
    if (side_by_side)
      for (auto& [begin, piece] : pieces_)
        if (const auto at = piece.free.take(size)) return begin + *at;
    const std::size_t needed = rounded_up(size, page);
    if (auto* block = allocate_in_new(std::max(needed, pages_at_once * page), size)) return block;
    return allocate_in_new(needed, size);
  }

  void release(void* memory, std::size_t bytes) override {
    auto* at = static_cast<std::byte*>(memory);
    const auto found = std::prev(pieces_.upper_bound(at));
    auto& [begin, piece] = *found;
    piece.free.give(static_cast<std::size_t>(at - begin), rounded_up(bytes, alignment));
    if (piece.free.total() < piece.bytes) return;
    std::free(begin);
    pieces_.erase(found);
  }

  std::optional<Room> room() const override {
    const auto bytes = [](int pages) {
      return static_cast<std::size_t>(sysconf(pages)) *
             static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    };
    return Room{bytes(_SC_AVPHYS_PAGES), bytes(_SC_PHYS_PAGES)};
  }

 private:
  struct Piece {
    std::size_t bytes = 0;
    FreeRanges free = {};
  };

  /// Allocates a new piece, takes a block of `size` from it and leaves the rest free. Returns null
  /// if there is no memory.
  void* allocate_in_new(std::size_t bytes, std::size_t size) {
    auto* begin = static_cast<std::byte*>(std::aligned_alloc(page, bytes));
    if (!begin) return nullptr;
    // This is advice: if the kernel refuses, pages stay small and everything still works.
    (void)madvise(begin, bytes, MADV_HUGEPAGE);
    auto& piece = pieces_[begin];
    piece.bytes = bytes;
    piece.free.give(0, bytes);
    return begin + piece.free.take(size).value();
  }

  std::map<std::byte*, Piece, std::less<>> pieces_;
};

}  // namespace

std::unique_ptr<MemorySource> host_memory() { return std::make_unique<HostMemory>(); }

}  // namespace troupe
