#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/digest.h"
#include "simulation/machine/wires.h"

namespace troupe::simulation {

/// Watches states of optimizers on their way between processes: a parameter has one value after a
/// step, in all attempts and lives of the run.
class StateWatch {
 public:
  /// Looks at a packet. Returns what is wrong with a state in it, if anything.
  std::optional<std::string> look(const Parts& parts);
  /// Returns how many tensors of states it has seen.
  std::int64_t seen() const { return seen_; }

 private:
  std::map<std::pair<std::int64_t, std::string>, Digest> states_;  // Keyed by step and tensor.
  std::int64_t seen_ = 0;
};

}  // namespace troupe::simulation
