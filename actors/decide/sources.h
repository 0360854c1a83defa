#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/kept_step.h"

namespace troupe::actors {

/// A state from which an attempt may begin.
struct StateSource {
  enum class From : std::uint8_t {
    seed,        // The state before the first step: random, or as configured.
    checkpoint,  // A complete checkpoint.
    memory,      // The memory of nodes.
  };

  From from = From::seed;
  std::int64_t step = 0;    // Steps done.
  std::vector<int> givers;  // From memory: by optimizer, the process that gives its state.

  friend bool operator==(const StateSource&, const StateSource&) = default;
};

/// The known states from which an attempt may begin.
struct KnownStates {
  std::span<const std::vector<KeptStep>> kept;  // In memory, by process.
  std::span<const int> owners;                  // The process of each optimizer.
  std::span<const std::int64_t> saved;          // The steps of complete checkpoints.
  std::int64_t committed = 0;                   // Steps in the ledger.
  bool was_ever_saved = false;                  // If so, the run does not begin anew.
};

/// Returns all sources, the best first: that of the highest step; of the same step, memory before a
/// checkpoint. A step in memory is one only if every optimizer's state is there and the ledger has
/// the step. Each state comes from its own process, or else from the next process that has it.
std::vector<StateSource> sources_of(const KnownStates& known);

}  // namespace troupe::actors
