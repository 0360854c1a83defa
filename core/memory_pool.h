#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// Where memory lies: with the host, or with the GPU of that number, where the host can neither
/// read nor write.
struct Place {
  static constexpr int host = -1;

  int gpu = host;

  bool is_host() const { return gpu == host; }
  friend bool operator==(const Place&, const Place&) = default;
};

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
  virtual void release(void* memory, std::size_t bytes) = 0;
  virtual Place place() const { return {}; }
  /// Nothing where that is not known.
  virtual std::optional<Room> room() const { return {}; }
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
  std::atomic<std::uint32_t> holders{0};
  Place place;
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

/// A pool's source has no memory left for a block.
struct Shortage {
  std::size_t wanted = 0;
  Place place;
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

class MemoryPool;

/// While a thread has one of these, a device works behind it: what the thread gives back to its
/// pools may be read or written yet. The thread itself may take it again at once, as what it gives
/// to the device is done in order; others not before settle(), when the device has done all.
class LateReturns {
 public:
  LateReturns();
  ~LateReturns();
  LateReturns(const LateReturns&) = delete;
  LateReturns& operator=(const LateReturns&) = delete;

  /// The device reads or writes it, and the host can too: it is not given back before settle().
  void hold(BlockHandle block) { held_.push_back(std::move(block)); }
  void settle();

  /// Null where no device works behind this thread.
  static LateReturns* of_this_thread();

 private:
  friend class MemoryPool;

  std::map<std::pair<MemoryPool*, std::size_t>, std::vector<MemoryBlock*>> blocks_;
  std::vector<BlockHandle> held_;
};

/// The memory of one device. Blocks come back to it and go out again, so that after the first steps
/// nothing is allocated any more. Any thread may take and return; a pool outlives its blocks.
class MemoryPool final : private MemoryOwner {
 public:
  explicit MemoryPool(std::unique_ptr<MemorySource> source = host_memory());
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// A block of at least so many bytes, aligned to 64. A full device throws OutOfMemory; before
  /// that, what nobody holds is given back to the source.
  BlockHandle take(std::size_t bytes);

  /// Gives back to the source what nobody holds.
  void trim();

  /// How much it should ever hold, as a plan has it: told where there is no memory left.
  void expect(std::size_t bytes);

  Place place() const { return source_->place(); }

  MemoryCounters counters() const;

 private:
  friend class LateReturns;
  void give_back(MemoryBlock* block) override;
  MemoryBlock* allocate(std::size_t size);
  void release_free();

  std::unique_ptr<MemorySource> source_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<MemoryBlock*>> free_;
  MemoryCounters counters_;
  std::size_t expected_ = 0;
};

}  // namespace troupe
