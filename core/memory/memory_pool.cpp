#include "core/memory/memory_pool.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "core/units.h"

namespace troupe {
namespace {

constexpr std::size_t cache_line = 64;

std::string words_for(const Shortage& shortage) {
  const auto& [wanted, place, room, pool, planned] = shortage;
  const std::string where =
      place.is_host() ? std::string("the host") : "GPU " + std::to_string(place.gpu);
  std::string text =
      "there is no memory left for it on " + where + ": wanted " + size_text(wanted) + " more";
  if (room) text += ", found " + gib_text(room->free, 3) + " free of " + gib_text(room->total, 3);
  text += "; this device holds " + gib_text(pool.bytes_in_use, 3) + " of " +
          gib_text(pool.bytes_reserved, 3) + " that it has taken";
  if (planned > 0) text += ", and the plan foresaw " + gib_text(planned, 3);
  return text + "; take a smaller batch.micro, more pipeline.stages, or pipeline.recompute = true";
}

}  // namespace

OutOfMemory::OutOfMemory(const Shortage& shortage)
    : shortage_(shortage), text_(words_for(shortage)) {}

MemoryPool::MemoryPool(std::unique_ptr<MemorySource> source,
                       std::shared_ptr<DeviceProgress> devices)
    : source_(std::move(source)), devices_(std::move(devices)) {}

MemoryPool::~MemoryPool() {
  trim();
  // Blocks that a device may still use are not released one by one, since a device that failed
  // never reports that it is done. Their memory goes with the source.
  for (auto& [kind, by_taker] : late_)
    for (auto& [taker, late] : by_taker)
      for (auto& [since, block] : late) delete block;
  assert(counters_.bytes_in_use == 0 && "a pool must outlive the tensors made from it");
}

DeviceWork* MemoryPool::work_here() const {
  if (!devices_) return nullptr;
  auto* work = DeviceWork::of_this_thread();
  return work && &work->progress() == devices_.get() ? work : nullptr;
}

/// Returns a returned block that may be reused, or null if there is none.
MemoryBlock* MemoryPool::take_back(Kind kind) {
  if (auto* late = take_late(kind)) return late;
  auto& blocks = free_[kind];
  if (blocks.empty()) return nullptr;
  auto* block = blocks.back();
  blocks.pop_back();
  return block;
}

MemoryBlock* MemoryPool::take_late(Kind kind) {
  const auto found = late_.find(kind);
  if (found == late_.end()) return nullptr;
  const auto* work = work_here();
  const auto settled = devices_->settled(work);
  const auto take = [](std::deque<LateBlock>& late, const auto& at) {
    auto* block = at->block;
    late.erase(at);
    return block;
  };
  if (auto& own = found->second[work ? work->number() : 0]; work)
    for (auto at = own.end(); at != own.begin();)
      if ((--at)->block->seen <= settled) return take(own, at);
  for (auto& [taker, late] : found->second)
    if (!late.empty() && late.front().since <= settled) return take(late, late.begin());
  return nullptr;
}

/// Rounds sizes up to four steps per doubling. At most a fifth is lost, and blocks are reused more.
std::size_t MemoryPool::size_of_block(std::size_t bytes) {
  bytes = std::max(bytes, cache_line);
  const std::size_t step = std::max(std::bit_floor(bytes) / 4, cache_line);
  return (bytes + step - 1) / step * step;
}

BlockHandle MemoryPool::take(std::size_t bytes, Lifetime lifetime) {
  const std::size_t size = size_of_block(bytes);
  const std::lock_guard lock(mutex_);
  MemoryBlock* block = take_back({size, lifetime});
  if (!block) block = allocate({size, lifetime});
  const auto* work = work_here();
  block->taken_by = work ? work->number() : 0;
  block->seen = 0;
  counters_.bytes_in_use += size;
  counters_.peak_in_use = std::max(counters_.peak_in_use, counters_.bytes_in_use);
  return BlockHandle(block);
}

void* MemoryPool::ask_source(Kind kind) {
  const auto [size, lifetime] = kind;
  return lifetime == Lifetime::lasting ? source_->allocate_lasting(size) : source_->allocate(size);
}

MemoryBlock* MemoryPool::allocate(Kind kind) {
  const auto [size, lifetime] = kind;
  void* memory = ask_source(kind);
  if (!memory) {
    release_free();
    memory = ask_source(kind);
  }
  if (!memory) throw OutOfMemory({size, place(), source_->room(), counters_, expected_});
  counters_.bytes_reserved += size;
  ++counters_.allocations;
  return new MemoryBlock{.memory = static_cast<std::byte*>(memory),
                         .bytes = size,
                         .owner = this,
                         .place = place(),
                         .lifetime = lifetime};
}

void MemoryPool::give_back(MemoryBlock* block) {
  const std::lock_guard lock(mutex_);
  counters_.bytes_in_use -= block->bytes;
  const Kind kind{block->bytes, block->lifetime};
  if (!devices_) return free_[kind].push_back(block);
  late_[kind][block->taken_by].push_back({devices_->now(), block});
}

void MemoryPool::trim() {
  const std::lock_guard lock(mutex_);
  release_free();
}

void MemoryPool::release_free() {
  if (devices_) settle();
  for (auto& [kind, blocks] : free_) {
    for (auto* block : blocks) {
      source_->release(block->memory, block->bytes);
      delete block;
      counters_.bytes_reserved -= kind.first;
    }
    blocks.clear();
  }
}

/// Moves blocks that no device uses any more to `free_`. "Settled" is not enough here: memory that
/// goes back to the source may go to users that follow no device.
void MemoryPool::settle() {
  const auto* work = work_here();
  const auto by_others = work ? devices_->done_by_others(*work) : devices_->settled(nullptr);
  const auto by_all = work ? std::min(by_others, work->reached()) : by_others;
  for (auto& [kind, by_taker] : late_) {
    auto& free = free_[kind];
    for (auto& [taker, late] : by_taker) {
      const auto own = work && taker == work->number() ? work->reached() : 0;
      std::erase_if(late, [&](const LateBlock& one) {
        const bool is_free =
            one.since <= by_all || (one.since <= own && one.block->seen <= by_others);
        if (is_free) free.push_back(one.block);
        return is_free;
      });
    }
  }
}

void MemoryPool::expect(std::size_t bytes, std::size_t pools) {
  const std::lock_guard lock(mutex_);
  const auto room = source_->room();
  expected_ = bytes;
  is_ample_ = !room || room->free / pools >= bytes + bytes / 2;
}

bool MemoryPool::is_ample() const {
  const std::lock_guard lock(mutex_);
  return is_ample_;
}

MemoryCounters MemoryPool::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace troupe
