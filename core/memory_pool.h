#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/device_progress.h"

namespace troupe {

/// Where a pool gets its memory: the host's heap, a GPU, a shared segment.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Aligned to 64 bytes at least; null when there is none left.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory, std::size_t bytes) = 0;
};

/// The heap, with huge pages asked for where a block is large.
std::unique_ptr<MemorySource> host_memory();

struct MemoryBlock;

/// Whose memory it is: a pool's, or for instance that of a channel between processes.
class MemoryOwner {
 public:
  /// Nobody holds the block any more. Comes on the thread of whoever held it last.
  virtual void give_back(MemoryBlock* block) = 0;

 protected:
  ~MemoryOwner() = default;
};

/// A piece of an owner's memory, counted by those who hold it.
struct MemoryBlock {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  MemoryOwner* owner = nullptr;
  std::uint64_t taken_in = 0;  // The job of a device; 0 where it was none. For its pool alone.
  std::atomic<std::uint32_t> holders{0};
};

/// A share in a block. The last one to go gives the block back to its owner.
class BlockHandle {
 public:
  BlockHandle() = default;
  explicit BlockHandle(MemoryBlock* block) : block_(block) { hold(); }
  BlockHandle(const BlockHandle& other) : block_(other.block_) { hold(); }
  BlockHandle(BlockHandle&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  BlockHandle& operator=(BlockHandle other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~BlockHandle() { drop(); }

  MemoryBlock* get() const { return block_; }
  explicit operator bool() const { return block_ != nullptr; }

 private:
  void hold() {
    if (block_) block_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  void drop() {
    if (block_ && block_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1)
      block_->owner->give_back(block_);
  }

  MemoryBlock* block_ = nullptr;
};

/// What a pool did so far.
struct MemoryCounters {
  std::size_t bytes_in_use = 0;    // Held by somebody now.
  std::size_t peak_in_use = 0;     // The most that was ever held at once.
  std::size_t bytes_reserved = 0;  // Taken from the source and not given back.
  std::uint64_t allocations = 0;   // Times that the source was asked: stands still in steady state.
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

  /// A block of at least so many bytes, aligned to 64. A full device throws std::bad_alloc.
  BlockHandle take(std::size_t bytes);

  /// Gives back to the source what nobody holds, and no device uses.
  void trim();

  MemoryCounters counters() const;

 private:
  friend class DeviceWork;
  /// One that nobody holds; since when, as DeviceProgress counts.
  struct LateBlock {
    DeviceProgress::Moment since;
    MemoryBlock* block;
  };

  void give_back(MemoryBlock* block) override;
  void keep_late(std::size_t size, const std::vector<MemoryBlock*>& blocks);
  /// The thread's own device work; null where it has none.
  DeviceWork* work_here() const;
  MemoryBlock* take_back(std::size_t size);

  std::unique_ptr<MemorySource> source_;
  std::shared_ptr<DeviceProgress> devices_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<MemoryBlock*>> free_;
  std::map<std::size_t, std::deque<LateBlock>> late_;  // The oldest first; none without devices.
  MemoryCounters counters_;
};

}  // namespace troupe
