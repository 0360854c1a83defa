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

/// Which parts of a stretch of memory are free. The lowest that fits goes first: what was used
/// lately is used again.
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
  std::vector<Part> parts_;  // By offset; no two touch.
};

/// The slots of a segment, at its sender. A slot is free once no tensor of this process lies in it
/// and all that was sent from it has come back. Any thread may use it; lives as long as the last
/// tensor that was lent.
class ShmSlots final : private MemoryOwner, public std::enable_shared_from_this<ShmSlots> {
 public:
  explicit ShmSlots(std::shared_ptr<ShmSegment> segment);

  /// Empty where there is no room.
  Tensor lend(const Shape& shape, DType type);
  /// The slot in which a tensor lies that was lent here.
  std::optional<std::uint32_t> slot_of(const Tensor& tensor) const;

  /// A slot for copies, in the regions that may be held or else in the one that may not; it goes
  /// out once.
  std::optional<ShmPlace> take(std::size_t bytes);

  /// A tensor of the slot is being sent, false where too many are out: it must be copied then.
  bool go_out(std::uint32_t slot);
  /// It was not sent after all.
  void stay(std::uint32_t slot);
  /// What the receiver has given back until now; false where it gives back what it has not got.
  bool take_returns();

 private:
  /// While it is lent, the block is what the tensors hold.
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
  std::vector<std::uint32_t> held_names_;  // Of slots that are free.
  std::vector<std::uint32_t> passing_names_;
  std::uint64_t returns_taken_ = 0;
  std::size_t held_out_ = 0;
  std::size_t lent_ = 0;
  std::shared_ptr<ShmSlots> keeper_;  // While something is lent.
};

}  // namespace troupe::transport
