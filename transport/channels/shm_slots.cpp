#include "transport/channels/shm_slots.h"

#include <algorithm>
#include <cassert>

#include "transport/channels/frame.h"

namespace troupe::transport {

FreeParts::FreeParts(std::size_t begin, std::size_t end, std::size_t most_taken) {
  parts_.reserve(most_taken + 1);
  parts_.push_back({begin, end - begin});
}

std::optional<std::size_t> FreeParts::take(std::size_t bytes) {
  const auto fits =
      std::ranges::find_if(parts_, [&](const Part& part) { return part.bytes >= bytes; });
  if (fits == parts_.end()) return std::nullopt;
  const auto offset = fits->offset;
  fits->offset += bytes;
  fits->bytes -= bytes;
  if (fits->bytes == 0) parts_.erase(fits);
  return offset;
}

void FreeParts::give_back(std::size_t offset, std::size_t bytes) {
  auto after = std::ranges::upper_bound(parts_, offset, {}, &Part::offset);
  const bool joins_after = after != parts_.end() && offset + bytes == after->offset;
  const bool joins_before =
      after != parts_.begin() && std::prev(after)->offset + std::prev(after)->bytes == offset;
  if (joins_before && joins_after) {
    std::prev(after)->bytes += bytes + after->bytes;
    parts_.erase(after);
  } else if (joins_before) {
    std::prev(after)->bytes += bytes;
  } else if (joins_after) {
    after->offset = offset;
    after->bytes += bytes;
  } else {
    parts_.insert(after, {offset, bytes});
  }
}

ShmSlots::ShmSlots(std::shared_ptr<ShmSegment> segment)
    : segment_(std::move(segment)),
      held_(segment_->held(), segment_->passing(), held_slots),
      passing_(segment_->passing(), segment_->bytes(), passing_slots),
      slots_(new Slot[all_slots]) {
  // Names are taken off the back, so the lowest is used first.
  for (auto name = held_slots; name > 0; --name) held_names_.push_back(name - 1);
  for (auto name = all_slots; name > held_slots; --name) passing_names_.push_back(name - 1);
}

std::optional<std::uint32_t> ShmSlots::take(FreeParts& parts, std::vector<std::uint32_t>& names,
                                            std::size_t bytes) {
  if (names.empty()) return std::nullopt;
  bytes = std::max(aligned(bytes), payload_alignment);
  const auto offset = parts.take(bytes);
  if (!offset) return std::nullopt;
  const auto name = names.back();
  names.pop_back();
  slots_[name].offset = *offset;
  slots_[name].bytes = bytes;
  return name;
}

Tensor ShmSlots::lend(const Shape& shape, DType type) {
  const std::lock_guard lock(mutex_);
  const auto name =
      take(held_, held_names_, static_cast<std::size_t>(shape.count()) * bytes_of(type));
  if (!name) return {};
  Slot& slot = slots_[*name];
  slot.lent = true;
  slot.memory = segment_->memory() + slot.offset;
  slot.owner = this;
  if (lent_++ == 0) keeper_ = shared_from_this();
  return Tensor::over(BlockHandle(&slot), 0, shape, type);
}

std::optional<std::uint32_t> ShmSlots::slot_of(const Tensor& tensor) const {
  if (tensor.block()->owner != this) return std::nullopt;
  return name_of(*static_cast<const Slot*>(tensor.block()));
}

std::optional<ShmPlace> ShmSlots::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::optional<std::uint32_t> name;
  if (held_out_ < most_held_out) {
    name = take(held_, held_names_, bytes);
    if (name) ++held_out_;
  }
  if (!name) name = take(passing_, passing_names_, bytes);
  if (!name) return std::nullopt;
  slots_[*name].out = 1;
  return ShmPlace{slots_[*name].offset, *name, 0};
}

bool ShmSlots::go_out(std::uint32_t name) {
  const std::lock_guard lock(mutex_);
  if (held_out_ >= most_held_out) return false;
  ++held_out_;
  ++slots_[name].out;
  return true;
}

void ShmSlots::stay(std::uint32_t name) {
  const std::lock_guard lock(mutex_);
  --held_out_;
  --slots_[name].out;
  free_if_unused(slots_[name]);
}

bool ShmSlots::take_returns() {
  auto& control = segment_->control();
  const auto returned = control.returned.load(std::memory_order_seq_cst);
  const std::lock_guard lock(mutex_);
  if (returned - returns_taken_ > most_out) return false;
  for (; returns_taken_ < returned; ++returns_taken_) {
    const auto name = control.returns[returns_taken_ % most_out].load(std::memory_order_relaxed);
    if (name >= all_slots || slots_[name].out == 0) return false;
    if (name < held_slots) --held_out_;
    --slots_[name].out;
    free_if_unused(slots_[name]);
  }
  return true;
}

void ShmSlots::give_back(MemoryBlock* block) {
  std::shared_ptr<ShmSlots> last;  // Outlives the lock.
  const std::lock_guard lock(mutex_);
  Slot& slot = *static_cast<Slot*>(block);
  slot.lent = false;
  free_if_unused(slot);
  if (--lent_ == 0) last = std::move(keeper_);
}

std::uint32_t ShmSlots::name_of(const Slot& slot) const {
  return static_cast<std::uint32_t>(&slot - slots_.get());
}

void ShmSlots::free_if_unused(Slot& slot) {
  if (slot.lent || slot.out > 0) return;
  const auto name = name_of(slot);
  (name < held_slots ? held_ : passing_).give_back(slot.offset, slot.bytes);
  (name < held_slots ? held_names_ : passing_names_).push_back(name);
}

}  // namespace troupe::transport
