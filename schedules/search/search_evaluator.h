#pragma once

#include <optional>
#include <vector>

#include "core/result.h"
#include "schedules/search/search.h"
#include "schedules/simulate/simulator.h"

namespace troupe::schedules {

/// Ratios of times that differ by less are the same but for rounding.
constexpr double rounding = 1e-9;

/// What counts about the lanes of one pipeline: whether they fit, and how long they take. Where
/// reductions or updates cost anything, they are part of it, as with_updates() would place them.
class Evaluator {
 public:
  /// For this schedule, and all that differ from it in the order of their passes alone.
  static Result<Evaluator> make(const Schedule& schedule, const Costs& costs);

  /// None if the lanes wait for each other.
  std::optional<double> time(const std::vector<Lane>& passes, Objective objective);

  /// How many actions one such answer plays.
  std::int64_t effort(Objective objective) const {
    return objective == Objective::makespan ? actions_ : 4 * actions_;
  }

  Simulator& passes_alone() { return passes_alone_; }

 private:
  Evaluator(Schedule schedule, Simulator passes_alone)
      : schedule_(std::move(schedule)), passes_alone_(std::move(passes_alone)) {}

  Schedule schedule_;  // Its lanes are those of the last question, where updates count.
  Simulator passes_alone_;
  std::optional<Simulator> with_updates_;
  std::int64_t actions_ = 0;
};

/// The first device that holds more than its cap; none if all fit. Peaks may exceed by a rounding.
std::optional<std::size_t> over_cap(const std::vector<Lane>& lanes, const Costs& costs,
                                    const std::vector<double>& caps);
bool fits(const Lane& lane, const Costs& costs, double cap);

}  // namespace troupe::schedules
