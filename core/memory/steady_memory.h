#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/memory/device_progress.h"
#include "core/memory/memory_pool.h"

namespace troupe {

class Stream;

/// Memory for work that repeats with the same allocations in the same order, such as a stage's
/// forward pass. Each repetition (a turn) gets the addresses of an earlier turn. Stable addresses
/// let a device replay its recorded graphs, which is faster. They affect speed only: a turn whose
/// allocations differ gets other memory.
///
/// All turns share the blocks that a turn takes and returns. A block that outlives its turn is kept
/// for turns of the same work. It is reused when nobody else holds it and no other device is about
/// to read it. The pool serves allocations directly if no device computes or if the plan leaves
/// little spare memory. It also does so once the device has run out of memory: the stream then
/// drops all kept blocks.
class SteadyMemory {
 public:
  /// The identity of repeated work: turns with equal numbers do the same work.
  using Work = std::uint64_t;

  class Turn;

  SteadyMemory() = default;
  SteadyMemory(SteadyMemory&&) = default;
  SteadyMemory& operator=(SteadyMemory&&) = default;
  SteadyMemory(const SteadyMemory&) = delete;
  SteadyMemory& operator=(const SteadyMemory&) = delete;

 private:
  friend class Stream;
  /// One allocation of a turn, in the turn's order.
  struct Taking {
    std::size_t size = 0;
    BlockHandle kept;  // Empty: the turn returned the block before it ended.
  };
  /// The allocations of one turn. Several sets may be in use, or still to be read, at once.
  struct Set {
    std::vector<Taking> takings;
    bool has_turn = false;
  };

  /// The blocks kept from one pool. The stream refers to it too, so that it can drop them.
  struct Kept {
    std::map<Work, std::vector<Set>> sets;
    std::map<std::size_t, std::vector<BlockHandle>> passing;  // Returned blocks, by size.
  };

  void keep_for(Stream& stream);
  Set* free_set(const Stream& stream, Work work);
  BlockHandle take_passing(std::size_t size);
  BlockHandle take_out(const MemoryBlock* block);

  MemoryPool* pool_ = nullptr;
  std::shared_ptr<Kept> kept_;  // Null before the first turn.
};

/// While a Turn lives, its stream allocates from a SteadyMemory. A stream takes one turn at a time,
/// on one thread.
class SteadyMemory::Turn {
 public:
  Turn(SteadyMemory& memory, Stream& stream, Work work);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  BlockHandle take(std::size_t bytes);
  /// Lets the pool serve the rest of the turn and keeps none of the turn's blocks.
  void give_up();

 private:
  SteadyMemory& memory_;
  Stream& stream_;
  Set* set_;                         // Null: the pool serves.
  std::vector<MemoryBlock*> given_;  // The blocks of the takings, by index.
};

}  // namespace troupe
