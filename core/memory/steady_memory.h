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

/// Memory for work that comes again and takes the same things in the same order each time, such as
/// a pass of a stage: a turn of it finds them at the addresses of an earlier one. That makes it
/// faster, for a device that knows its work by the addresses in it, and nothing else: a turn that
/// takes other things than those before gets other memory.
///
/// What a turn takes and gives back serves all turns, one after another. What outlives a turn is
/// kept for turns of the same work: it goes out again when nobody else holds it and no other device
/// is to read it yet. Where no device computes, or a plan leaves it little memory beside, the
/// pool serves as ever; and so it does from the moment when a device's memory was full: then the
/// stream lets go what is kept.
class SteadyMemory {
 public:
  /// Turns of equal numbers are of the same work.
  using Work = std::uint64_t;

  class Turn;

  SteadyMemory() = default;
  SteadyMemory(SteadyMemory&&) = default;
  SteadyMemory& operator=(SteadyMemory&&) = default;
  SteadyMemory(const SteadyMemory&) = delete;
  SteadyMemory& operator=(const SteadyMemory&) = delete;

 private:
  friend class Stream;
  /// A block that a turn takes, in its order.
  struct Taking {
    std::size_t size = 0;
    BlockHandle kept;  // Empty: it was given back within the turn.
  };
  /// What one turn took. Several turns' may be in use at once, or yet to be read.
  struct Set {
    std::vector<Taking> takings;
    bool has_turn = false;
  };

  /// What is kept, of one pool. Its stream knows it, too.
  struct Kept {
    std::map<Work, std::vector<Set>> sets;
    std::map<std::size_t, std::vector<BlockHandle>> passing;  // By size: what turns give back.
  };

  void keep_for(Stream& stream);
  Set* free_set(const Stream& stream, Work work);
  BlockHandle take_passing(std::size_t size);
  BlockHandle take_out(const MemoryBlock* block);

  MemoryPool* pool_ = nullptr;
  std::shared_ptr<Kept> kept_;  // Null before the first turn.
};

/// While there is one, what its stream makes lies there. A stream takes one turn at a time, on one
/// thread.
class SteadyMemory::Turn {
 public:
  Turn(SteadyMemory& memory, Stream& stream, Work work);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  BlockHandle take(std::size_t bytes);
  /// For the rest of it the pool serves, and nothing of it is kept.
  void give_up();

 private:
  SteadyMemory& memory_;
  Stream& stream_;
  Set* set_;                         // Null: the pool serves.
  std::vector<MemoryBlock*> given_;  // By taking.
};

}  // namespace troupe
