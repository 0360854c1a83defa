#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace troupe {

/// Where memory lies: with the host, or with the GPU of that number, where the host can neither
/// read nor write.
struct MemoryPlace {
  static constexpr int host = -1;

  int gpu = host;

  bool is_host() const { return gpu == host; }
  friend bool operator==(const MemoryPlace&, const MemoryPlace&) = default;
};

struct MemoryBlock;

/// For how long a block is likely to be held: until a pass is through, or from step to step. Blocks
/// of one kind lie together, so that those that go leave no holes between those that stay.
enum class Lifetime : std::uint8_t { passing, lasting };

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
  /// The device's work that took it, as DeviceWork counts; 0: no device's.
  std::uint64_t taken_by = 0;
  /// When another device was last given something that works on it, as DeviceProgress counts.
  std::atomic<std::uint64_t> seen{0};
  std::atomic<std::uint32_t> holders{0};
  MemoryPlace place = {};
  Lifetime lifetime = Lifetime::passing;
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
  /// Whether nobody else holds the block.
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
