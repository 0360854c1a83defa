#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "actors/decide/reconciler.h"
#include "actors/play/recovery_points.h"
#include "simulation/clock.h"

namespace troupe::simulation {

/// The simulated state store of all nodes' memory. The real code in actors/play decides which steps
/// are kept. This class computes which node holds which unit from when on, without messages: the
/// owner of a unit at once, the next nodes of the plan after the travel time.
class Copies {
 public:
  using Life = actors::reconciler::Life;
  /// The state of one node's units after a step.
  struct Given {
    std::uint64_t epoch = 0;
    std::int64_t step = 0;
    Life owner = 0;
    const std::vector<Life>& members;  // The plan's members.
    const std::map<int, std::uint64_t>& weights;
    Duration travel{};
    Duration copying{};  // Time that a node spends to copy what other nodes send it.
  };

  explicit Copies(const Clock& clock) : clock_(clock) {}

  /// Sets the copies of each unit, including the owner's. With one, nothing is kept.
  void keep_of_each(int copies) { each_ = copies; }
  bool are_kept() const { return each_ > 1; }

  /// Starts an attempt that continues after `step`. Drops the copies of all other steps.
  void begin(std::uint64_t epoch, std::int64_t step);
  /// Keeps the copies; returns false if the step is not to be kept.
  bool keep(const Given& given);
  /// Reports the number of steps in the ledger.
  void entered(std::int64_t steps) { recovery_points_.entered(steps); }
  /// Removes a node with its copies and the copies that it has not finished sending.
  void lose(Life life);

  std::optional<std::uint64_t> find(int unit, std::int64_t step) const;
  /// Returns the newest step up to `most` with copies of the first `units` units, or 0.
  std::int64_t newest(int units, std::int64_t most) const;

 private:
  struct Copy {
    std::uint64_t weight = 0;
    Life owner = 0;
    std::vector<Life> others;
    Time there{};  // The time from which the others have it.
  };
  using Step = std::map<int, Copy>;  // Keyed by unit.

  bool is_to_be_kept(const Given& given);
  Time there(const Step& step) const;

  const Clock& clock_;
  int each_ = 1;
  std::uint64_t epoch_ = 0;
  actors::RecoveryPoints recovery_points_;
  actors::LossRate losses_;
  std::int64_t told_ = 0;               // The newest step of the attempt that a node reported.
  std::map<std::int64_t, Step> steps_;  // The recovery point, and a step that may follow it.
  std::set<Life> lost_;
};

}  // namespace troupe::simulation
