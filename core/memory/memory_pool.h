#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/device_progress.h"
#include "core/memory/memory_block.h"

namespace troupe {

/// The free and total memory of a place, in bytes.
struct Room {
  std::size_t free = 0;
  std::size_t total = 0;
};

/// The allocator behind a pool: the host's heap, a GPU, a shared segment.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Allocates memory aligned to at least 64 bytes. Returns null if there is none left.
  virtual void* allocate(std::size_t bytes) = 0;
  /// Allocates memory that is held from step to step; a source may put it elsewhere.
  virtual void* allocate_lasting(std::size_t bytes) { return allocate(bytes); }
  virtual void release(void* memory, std::size_t bytes) = 0;
  virtual MemoryPlace place() const { return {}; }
  /// Returns nothing if the source does not know its room.
  virtual std::optional<Room> room() const { return {}; }
};

/// Returns the heap as a source, with huge pages if the system provides them.
std::unique_ptr<MemorySource> host_memory();

/// A pool's statistics.
struct MemoryCounters {
  std::size_t bytes_in_use = 0;    // Held by callers now.
  std::size_t peak_in_use = 0;     // The maximum of bytes_in_use so far.
  std::size_t bytes_reserved = 0;  // Taken from the source and not returned.
  std::uint64_t allocations = 0;   // Calls to the source: constant in steady state.
};

/// The facts of a failed allocation: the pool's source had no memory left for a block.
struct Shortage {
  std::size_t wanted = 0;
  MemoryPlace place;
  std::optional<Room> room;
  MemoryCounters pool;
  std::size_t planned = 0;  // The plan's estimate of the pool's maximum; 0: no plan.
};

class OutOfMemory final : public std::bad_alloc {
 public:
  explicit OutOfMemory(const Shortage& shortage);

  const Shortage& shortage() const { return shortage_; }
  /// Returns the message for the user, with what to do.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  Shortage shortage_;
  std::string text_;
};

/// A caching allocator for one device: returned blocks are reused, so that after the first steps it
/// allocates nothing. Any thread may take and return blocks. A pool outlives its blocks and the
/// devices that may use them.
class MemoryPool final : private MemoryOwner {
 public:
  /// Without `devices`, only the CPU cores use the blocks.
  explicit MemoryPool(std::unique_ptr<MemorySource> source = host_memory(),
                      std::shared_ptr<DeviceProgress> devices = nullptr);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// Takes a block of at least `bytes` bytes, aligned to 64. If the source is full, gives
  /// free blocks back to it and tries again. Throws OutOfMemory if that fails.
  BlockHandle take(std::size_t bytes, Lifetime lifetime = Lifetime::passing);
  /// Returns the size of the block that take() gives for `bytes`.
  static std::size_t size_of_block(std::size_t bytes);
  /// Returns whether the block belongs to this pool.
  bool owns(const MemoryBlock& block) const { return block.owner == this; }

  /// Gives blocks that nobody holds and no device uses back to the source.
  void trim();

  /// Sets the plan's estimate of the pool's maximum, which an OutOfMemory error mentions. `pools`
  /// pools of the plan share the source's room.
  void expect(std::size_t bytes, std::size_t pools = 1);
  /// Returns whether there was room for 1.5 times the estimate, so that speed may cost memory.
  bool is_ample() const;

  MemoryPlace place() const { return source_->place(); }

  MemoryCounters counters() const;

 private:
  /// A block that nobody holds, and the DeviceProgress time when it was returned.
  struct LateBlock {
    DeviceProgress::Moment since;
    MemoryBlock* block;
  };

  void give_back(MemoryBlock* block) override;
  using Kind = std::pair<std::size_t, Lifetime>;  // A block's size and lifetime.
  MemoryBlock* allocate(Kind kind);
  void* ask_source(Kind kind);
  void release_free();
  void settle();
  /// Returns the calling thread's DeviceWork for this pool's devices, or null if it has none.
  DeviceWork* work_here() const;
  MemoryBlock* take_back(Kind kind);
  MemoryBlock* take_late(Kind kind);

  std::unique_ptr<MemorySource> source_;
  std::shared_ptr<DeviceProgress> devices_;
  mutable std::mutex mutex_;
  std::map<Kind, std::vector<MemoryBlock*>> free_;
  // Keyed by MemoryBlock::taken_by, the oldest block first. Empty without devices.
  std::map<Kind, std::map<std::uint64_t, std::deque<LateBlock>>> late_;
  MemoryCounters counters_;
  std::size_t expected_ = 0;
  bool is_ample_ = true;
};

}  // namespace troupe
