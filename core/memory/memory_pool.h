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

/// How much there is at a place, and how much of it nobody has.
struct Room {
  std::size_t free = 0;
  std::size_t total = 0;
};

/// Where a pool gets its memory: the host's heap, a GPU, a shared segment.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Aligned to 64 bytes at least; null when there is none left.
  virtual void* allocate(std::size_t bytes) = 0;
  /// The same for what is held from step to step, perhaps elsewhere.
  virtual void* allocate_lasting(std::size_t bytes) { return allocate(bytes); }
  virtual void release(void* memory, std::size_t bytes) = 0;
  virtual MemoryPlace place() const { return {}; }
  /// Nothing where that is not known.
  virtual std::optional<Room> room() const { return {}; }
};

/// The heap, by huge pages where the system gives them.
std::unique_ptr<MemorySource> host_memory();

/// What a pool did so far.
struct MemoryCounters {
  std::size_t bytes_in_use = 0;    // Held by somebody now.
  std::size_t peak_in_use = 0;     // The most that was ever held at once.
  std::size_t bytes_reserved = 0;  // Taken from the source and not given back.
  std::uint64_t allocations = 0;   // Times that the source was asked: stands still in steady state.
};

/// A pool's source has no memory left for a block.
struct Shortage {
  std::size_t wanted = 0;
  MemoryPlace place;
  std::optional<Room> room;
  MemoryCounters pool;
  std::size_t planned = 0;  // That the pool should ever hold; 0: nobody has said.
};

class OutOfMemory final : public std::bad_alloc {
 public:
  explicit OutOfMemory(const Shortage& shortage);

  const Shortage& shortage() const { return shortage_; }
  /// In words for a person, with what to do.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  Shortage shortage_;
  std::string text_;
};

/// The memory of one device. Blocks come back to it and go out again, so that after the first steps
/// nothing is allocated any more. Any thread may take and return; a pool outlives its blocks, and
/// the devices that may use them.
class MemoryPool final : private MemoryOwner {
 public:
  /// Without `devices` nobody but the cores uses its blocks.
  explicit MemoryPool(std::unique_ptr<MemorySource> source = host_memory(),
                      std::shared_ptr<DeviceProgress> devices = nullptr);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// A block of at least so many bytes, aligned to 64. A full device throws OutOfMemory; before
  /// that, what nobody holds is given back to the source.
  BlockHandle take(std::size_t bytes, Lifetime lifetime = Lifetime::passing);
  /// How large that block is.
  static std::size_t size_of_block(std::size_t bytes);
  /// Whether it has given this block out.
  bool owns(const MemoryBlock& block) const { return block.owner == this; }

  /// Gives back to the source what nobody holds, and no device uses.
  void trim();

  /// How much it should ever hold, as a plan has it: told where there is no memory left. So many
  /// pools of that plan share the source's room.
  void expect(std::size_t bytes, std::size_t pools = 1);
  /// Whether the source had half as much again and more: then some may be kept for speed alone.
  bool is_ample() const;

  MemoryPlace place() const { return source_->place(); }

  MemoryCounters counters() const;

 private:
  /// One that nobody holds; since when, as DeviceProgress counts.
  struct LateBlock {
    DeviceProgress::Moment since;
    MemoryBlock* block;
  };

  void give_back(MemoryBlock* block) override;
  using Kind = std::pair<std::size_t, Lifetime>;  // Of blocks: their size first.
  MemoryBlock* allocate(Kind kind);
  void* ask_source(Kind kind);
  void release_free();
  void settle();
  /// The thread's own device work; null where it has none.
  DeviceWork* work_here() const;
  MemoryBlock* take_back(Kind kind);
  MemoryBlock* take_late(Kind kind);

  std::unique_ptr<MemorySource> source_;
  std::shared_ptr<DeviceProgress> devices_;
  mutable std::mutex mutex_;
  std::map<Kind, std::vector<MemoryBlock*>> free_;
  // By whose work took them (MemoryBlock::taken_by), the oldest first; none without devices.
  std::map<Kind, std::map<std::uint64_t, std::deque<LateBlock>>> late_;
  MemoryCounters counters_;
  std::size_t expected_ = 0;
  bool is_ample_ = true;
};

}  // namespace troupe
