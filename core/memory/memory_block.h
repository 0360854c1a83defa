#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace troupe {

/// The location of memory: the host, or the GPU with this number. The host can neither read nor
/// write a GPU's memory.
struct MemoryPlace {
  static constexpr int host = -1;

  int gpu = host;

  bool is_host() const { return gpu == host; }
  friend bool operator==(const MemoryPlace&, const MemoryPlace&) = default;
};

struct MemoryBlock;

/// How long a block is likely to be held: during one pass, or from step to step. Blocks of one kind
/// lie together, so that freed ones leave no holes between lasting ones.
enum class Lifetime : std::uint8_t { passing, lasting };

/// The owner of memory blocks: a pool, or for example a channel between processes.
class MemoryOwner {
 public:
  /// Takes back a block that nobody holds any more. Runs on the thread of the last holder.
  virtual void give_back(MemoryBlock* block) = 0;

 protected:
  ~MemoryOwner() = default;
};

/// A piece of an owner's memory with a reference count.
struct MemoryBlock {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  MemoryOwner* owner = nullptr;
  /// The number of the DeviceWork that took the block; 0: none.
  std::uint64_t taken_by = 0;
  /// The DeviceProgress time when another device's thread last took its address.
  std::atomic<std::uint64_t> seen{0};
  std::atomic<std::uint32_t> holders{0};
  MemoryPlace place = {};
  Lifetime lifetime = Lifetime::passing;
};

/// A shared reference to a block. The last one returns the block to its owner.
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
  /// Returns whether this is the only handle to the block.
  bool is_last() const { return block_->holders.load(std::memory_order_acquire) == 1; }
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

}  // namespace troupe
