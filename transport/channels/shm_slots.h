#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/memory/memory_pool.h"
#include "core/memory/tensor.h"
#include "transport/channels/shm_segment.h"

namespace troupe::transport {

/// A first-fit allocator of offsets. The lowest free part goes first, so recently used memory is
/// reused.
class FreeParts {
 public:
  FreeParts(std::size_t begin, std::size_t end, std::size_t most_taken);

  std::optional<std::size_t> take(std::size_t bytes);
  void give_back(std::size_t offset, std::size_t bytes);

 private:
  struct Part {
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  std::vector<Part> parts_;  // Sorted by offset; adjacent parts are merged.
};

/// The slots of a segment, at its sender. A slot is free when no tensor of this process uses it and
/// the receiver has returned everything sent from it. Usable from any thread; lives until the last
/// lent tensor is dropped.
class ShmSlots final : private MemoryOwner, public std::enable_shared_from_this<ShmSlots> {
 public:
  explicit ShmSlots(std::shared_ptr<ShmSegment> segment);

  /// Returns an empty tensor if there is no room.
  Tensor lend(const Shape& shape, DType type);
  /// Returns the slot of a tensor that lend() made.
  std::optional<std::uint32_t> slot_of(const Tensor& tensor) const;

  /// Takes a slot for copies, preferably a held slot and otherwise a passing one. It counts as sent
  /// once.
  std::optional<ShmPlace> take(std::size_t bytes);

  /// Counts the slot as sent once more. Returns false if too many slots are out: copy the tensor
  /// then.
  bool go_out(std::uint32_t slot);
  /// Undoes go_out().
  void stay(std::uint32_t slot);
  /// Frees the slots that the receiver has returned. Returns false if it returns a slot that it
  /// lacks.
  bool take_returns();

 private:
  /// The tensors of a lent slot hold it as their memory block.
  struct Slot : MemoryBlock {
    std::size_t offset = 0;  // In the segment.
    bool lent = false;
    std::uint32_t out = 0;
  };

  void give_back(MemoryBlock* block) override;
  std::optional<std::uint32_t> take(FreeParts& parts, std::vector<std::uint32_t>& names,
                                    std::size_t bytes);
  std::uint32_t name_of(const Slot& slot) const;
  void free_if_unused(Slot& slot);

  std::shared_ptr<ShmSegment> segment_;
  mutable std::mutex mutex_;
  FreeParts held_;
  FreeParts passing_;
  std::unique_ptr<Slot[]> slots_;
  std::vector<std::uint32_t> held_names_;  // Free slots.
  std::vector<std::uint32_t> passing_names_;
  std::uint64_t returns_taken_ = 0;
  std::size_t held_out_ = 0;
  std::size_t lent_ = 0;
  std::shared_ptr<ShmSlots> keeper_;  // Set while a slot is lent.
};

}  // namespace troupe::transport
