#pragma once

#include <optional>
#include <vector>

#include "core/result.h"
#include "schedules/search/search.h"
#include "schedules/simulate/simulator.h"

namespace troupe::schedules {

/// Times whose ratio differs from 1 by less than this count as equal.
constexpr double rounding = 1e-9;

/// Evaluates lanes of one pipeline: whether they fit, and how long they take. Includes reductions
/// and updates if they cost anything, placed by with_updates().
class Evaluator {
 public:
  /// Creates an evaluator for this schedule and all that differ only in the order of passes.
  static Result<Evaluator> make(const Schedule& schedule, const Costs& costs);

  /// Returns nothing if the lanes deadlock.
  std::optional<double> time(const std::vector<Lane>& passes, Objective objective);

  /// Returns how many actions one call of time() simulates.
  std::int64_t effort(Objective objective) const {
    return objective == Objective::makespan ? actions_ : 4 * actions_;
  }

  Simulator& passes_alone() { return passes_alone_; }

 private:
  Evaluator(Schedule schedule, Simulator passes_alone)
      : schedule_(std::move(schedule)), passes_alone_(std::move(passes_alone)) {}

  Schedule schedule_;  // If updates cost anything, its lanes are those of the last call.
  Simulator passes_alone_;
  std::optional<Simulator> with_updates_;
  std::int64_t actions_ = 0;
};

/// Returns the first device over its cap, or nothing if all fit. Tolerates rounding.
std::optional<std::size_t> over_cap(const std::vector<Lane>& lanes, const Costs& costs,
                                    const std::vector<double>& caps);
bool fits(const Lane& lane, const Costs& costs, double cap);

}  // namespace troupe::schedules
