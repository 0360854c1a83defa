#include "core/memory/steady_memory.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/memory/stream.h"

namespace troupe {
namespace {

// The most sets per kind of work: one for each micro-batch in flight or not yet read by others.
// Work that needs more sets has no order in which addresses repeat.
constexpr std::size_t most_sets = 16;

}  // namespace

void SteadyMemory::keep_for(Stream& stream) {
  if (kept_ && pool_ == &stream.memory()) return;
  pool_ = &stream.memory();
  kept_ = std::make_shared<Kept>();
  std::erase_if(stream.kept_, [](const auto& kept) { return kept.expired(); });
  stream.kept_.push_back(kept_);
}

SteadyMemory::Set* SteadyMemory::free_set(const Stream& stream, Work work) {
  if (!stream.device() || stream.was_full_ || !pool_->is_ample()) return nullptr;
  const auto* device = DeviceWork::of_this_thread();
  const auto settled = device ? device->progress().settled(device) : 0;
  const auto is_free = [&](const Taking& taking) {
    return !taking.kept || (taking.kept.is_last() && taking.kept.get()->seen <= settled);
  };
  auto& sets = kept_->sets[work];
  // Turns point to their sets, so the vector must never reallocate.
  if (sets.empty()) sets.reserve(most_sets);
  for (auto& set : sets)
    if (!set.has_turn && std::ranges::all_of(set.takings, is_free)) return &set;
  return sets.size() < most_sets ? &sets.emplace_back() : nullptr;
}

BlockHandle SteadyMemory::take_passing(std::size_t size) {
  auto& blocks = kept_->passing[size];
  // Always take the first free block, so that the order of returns does not matter.
  const auto found = std::ranges::find_if(blocks, &BlockHandle::is_last);
  return found != blocks.end() ? *found : blocks.emplace_back(pool_->take(size));
}

/// Removes a passing block that somebody else still holds. Returns an empty handle if nobody does.
BlockHandle SteadyMemory::take_out(const MemoryBlock* block) {
  auto& blocks = kept_->passing[block->bytes];
  const auto found = std::ranges::find(blocks, block, &BlockHandle::get);
  if (found == blocks.end() || found->is_last()) return {};
  BlockHandle taken = std::move(*found);
  blocks.erase(found);
  return taken;
}

SteadyMemory::Turn::Turn(SteadyMemory& memory, Stream& stream, Work work)
    : memory_(memory), stream_(stream) {
  assert(!stream.turn_ && "a stream takes one turn at a time");
  memory.keep_for(stream);
  set_ = memory.free_set(stream, work);
  if (!set_) return;
  set_->has_turn = true;
  stream.turn_ = this;
}

BlockHandle SteadyMemory::Turn::take(std::size_t bytes) {
  const std::size_t size = MemoryPool::size_of_block(bytes);
  auto& takings = set_->takings;
  const std::size_t next = given_.size();
  // From here on the turn differs from earlier ones.
  if (next < takings.size() && takings[next].size != size) takings.resize(next);
  if (next == takings.size()) takings.push_back({size, {}});
  const auto& kept = takings[next].kept;
  BlockHandle block = kept ? kept : memory_.take_passing(size);
  given_.push_back(block.get());
  return block;
}

void SteadyMemory::Turn::give_up() {
  set_ = nullptr;
  stream_.turn_ = nullptr;
}

SteadyMemory::Turn::~Turn() {
  if (!set_) return;
  stream_.turn_ = nullptr;
  set_->has_turn = false;
  auto& takings = set_->takings;
  takings.resize(given_.size());
  // If a block was given out more than once, it belongs to the last taking.
  for (std::size_t i = takings.size(); i-- > 0;)
    if (!takings[i].kept) takings[i].kept = memory_.take_out(given_[i]);
}

}  // namespace troupe
