#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "actors/decide/records.h"
#include "actors/kept_step.h"
#include "actors/play/recovery_points.h"
#include "simulation/clock.h"

namespace troupe::simulation {

/// The states of a run in the memory of nodes. The code in actors/play decides which steps are
/// kept. This class knows which node has which part of a state: its owner at once, and the next
/// nodes of the plan after the travel time.
class Copies {
 public:
  using Life = actors::decide::Life;
  /// A step that the nodes of a plan have done.
  struct Step {
    std::uint64_t attempt = 0;
    std::int64_t step = 0;
    const std::vector<Life>& members;  // The plan's nodes. They own the parts in turn.
    Duration travel{};
    Duration copying{};  // Time that a node spends to copy what other nodes send it.
  };

  /// `each`: the copies of each part, including the owner's. With one, nothing is kept.
  Copies(const Clock& clock, int parts, int each) : clock_(clock), parts_(parts), each_(each) {}

  /// Starts an attempt that continues after `step`. Drops the copies of all other steps.
  void begin(std::uint64_t attempt, std::int64_t step);
  /// Keeps the copies; returns false if the step is not to be kept.
  bool keep(const Step& step);
  /// Reports the number of steps in the ledger.
  void entered(std::int64_t steps) { recovery_points_.entered(steps); }
  /// Removes a node with its copies and the copies that it has not finished sending.
  void lose(Life life);

  /// Returns the states in a node's memory.
  std::vector<actors::KeptStep> of(Life life) const;
  /// Returns, by part, the nodes of a plan that keep it.
  std::vector<std::vector<Life>> keepers(const std::vector<Life>& members) const;

 private:
  struct Kept {
    std::vector<std::vector<Life>> keepers;  // Indexed by part; the owner comes first.
    Time there{};                            // The time from which all of them have it.
  };

  bool is_to_be_kept(const Step& step);

  const Clock& clock_;
  const int parts_, each_;
  std::uint64_t attempt_ = 0;
  actors::RecoveryPoints recovery_points_;
  actors::LossRate losses_;
  std::map<std::int64_t, Kept> steps_;  // The recovery point, and a step that may follow it.
};

}  // namespace troupe::simulation
