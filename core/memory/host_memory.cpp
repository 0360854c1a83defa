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
// Each block is a piece of its own where a sanitizer is to see who reads beyond it.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool side_by_side = false;
constexpr std::size_t page = alignment;
constexpr std::size_t pages_at_once = 1;
#else
constexpr bool side_by_side = true;
constexpr std::size_t page = std::size_t{2} << 20;  // A huge one.
// Of addresses: a page takes memory when something in it is first written.
constexpr std::size_t pages_at_once = 32;
#endif

std::size_t rounded_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// Blocks of all sizes lie side by side in pieces of huge pages. A page of the usual size holds a
/// row or less of most tensors: a product would ask for the addresses of more of them than the
/// processor can remember, and find them scattered over the sets of its caches.
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

  /// A block in a piece of its own, which has room for others beside it; null where there is no
  /// memory for one.
  void* allocate_in_new(std::size_t bytes, std::size_t size) {
    auto* begin = static_cast<std::byte*>(std::aligned_alloc(page, bytes));
    if (!begin) return nullptr;
    // Advice only: where the kernel refuses, pages stay small and everything works.
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
