#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "actors/decide/reconciler.h"
#include "actors/play/lines.h"
#include "simulation/clock.h"

namespace troupe::simulation {

/// What nodes have in their memory of a run's state. Of which steps they keep it the real Lines
/// decide; who has what, and from when on, is reckoned here, and no messages tell of it. A unit's
/// owner has it at once, the nodes after it in the plan when it has traveled there.
class Copies {
 public:
  using Life = actors::reconciler::Life;
  /// A node's units after a step.
  struct Given {
    std::uint64_t epoch = 0;
    std::int64_t step = 0;
    Life owner = 0;
    const std::vector<Life>& members;  // Of the plan.
    const std::map<int, std::uint64_t>& weights;
    Duration travel{};
    Duration copying{};  // That it takes of a node's time to keep what others give it.
  };

  explicit Copies(const Clock& clock) : clock_(clock) {}

  /// Of each unit, its owner's among them. One is as good as none: nothing is kept.
  void keep_of_each(int copies) { each_ = copies; }
  bool are_kept() const { return each_ > 1; }

  /// An epoch goes on after a step. What is of other steps is let go.
  void begin(std::uint64_t epoch, std::int64_t step);
  /// False where this is no step to be kept.
  bool keep(const Given& given);
  /// The ledger has so many steps.
  void entered(std::int64_t steps) { lines_.entered(steps); }
  /// A node is gone, with what it has and what it has not sent yet.
  void lose(Life life);

  std::optional<std::uint64_t> find(int unit, std::int64_t step) const;
  /// The newest step, up to `most`, of which so many units are there; 0: there is none.
  std::int64_t newest(int units, std::int64_t most) const;

 private:
  struct Copy {
    std::uint64_t weight = 0;
    Life owner = 0;
    std::vector<Life> others;
    Time there{};  // From when on the others have it.
  };
  using Step = std::map<int, Copy>;  // By unit.

  bool is_to_be_kept(const Given& given);
  Time there(const Step& step) const;

  const Clock& clock_;
  int each_ = 1;
  std::uint64_t epoch_ = 0;
  actors::Lines lines_;
  actors::LossRate losses_;
  std::int64_t told_ = 0;               // The newest step of the epoch that a node told of.
  std::map<std::int64_t, Step> steps_;  // The line, and one that may become it.
  std::set<Life> lost_;
};

}  // namespace troupe::simulation
