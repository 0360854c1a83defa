#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "actors/decide/detector.h"
#include "actors/decide/running_median.h"

namespace troupe::actors {

/// A plan that a run could use, and the time of a step that the planner expects.
struct ForecastPlan {
  std::string name;  // Equal plans have equal names.
  int stages = 1;
  int chunks = 1;
  int devices = 1;
  double seconds = 0;
  std::int64_t memory = 0;  // Bytes on the fullest device.

  /// Plans of one layout differ in their cuts and in the order of their passes.
  auto layout() const { return std::tuple(stages, chunks, devices); }
};

struct PlanTimesLimits {
  int warm_up = 3;           // First steps of each attempt that are ignored.
  int least_steps = 8;       // A plan is measured after this many steps more,
  double least_seconds = 5;  // and after this time.
  std::chrono::nanoseconds hold = std::chrono::hours(1);  // Figures count for this long.
  int most_tries = 4;   // Other plans that are tried in this time because of their forecast alone.
  int most_hasty = 8;   // Changes of plan in this time that need not wait for saves.
  double off = 0.25;    // A forecast that is off by more is looked at again.
  double alike = 0.03;  // Times that differ by less count as equal.
  double least_gain = 0.03;      // The least gain by a plan that was measured,
  double least_new_gain = 0.08;  // and by one that was not.
  double spreads = 2;            // A gain must be this many times the spread of the steps.
};

/// The measured steps of a run by plan. Forecasts of plans that were measured give way to
/// their measurements, so that a run comes back to a plan only if it was faster. A measurement also
/// corrects the forecasts of other plans: those of the same layout by the same factor, and those of
/// other layouts as far as they have the same sources of error.
class PlanTimes {
 public:
  struct Figures {
    double step = 0;    // Seconds: the median.
    double spread = 0;  // The median distance from it, as a part of it.
    /// The seconds of a step in which the busiest device computes.
    std::optional<double> computing = {};
  };
  enum class Basis : std::uint8_t { forecast, measurement };
  struct Choice {
    std::size_t plan = 0;  // The index in the list of plans.
    double seconds = 0;    // The expected time of its step.
    Basis basis = Basis::forecast;
  };

  explicit PlanTimes(PlanTimesLimits limits = {}) : limits_(limits) {}

  /// Another attempt begins. The figures of the attempt before count for this one as well if both
  /// play the same plan on the same nodes: so a plan is measured even if no attempt lasts long.
  void begin(const std::string& plan_and_nodes);
  void add(double seconds, std::optional<double> computing);
  /// Returns the figures of the plan in force; nothing until there are enough.
  std::optional<Figures> measured() const;
  /// Remembers the present figures as those of a plan, the one in force.
  void note(const std::string& plan, Time now);
  /// Returns whether a plan was measured on these nodes. Then forecasts alone decide nothing.
  bool knows_plans(Time now) const;
  /// Forgets all plans, since they were for other nodes.
  void forget() { known_.clear(), tries_.clear(), changes_.clear(); }
  /// Notes that the run changes over to a plan.
  void changed_over(Basis basis, Time now);
  /// Returns whether the run may change over without waiting for saves. A run must leave a slow
  /// plan soon, but must not change over again and again while measurements vary.
  bool may_hurry(Time now) const;

  /// Returns whether the expected time of the plan in force has to be looked at again.
  bool is_off(double expected) const;
  /// Returns the plan to change over to; nothing if none is better beyond doubt, or if the plan in
  /// force was not measured. `plans` may contain the plan in force.
  std::optional<Choice> better(const std::vector<ForecastPlan>& plans, const ForecastPlan& in_force,
                               Time now) const;

 private:
  struct Known {
    double step = 0;
    Time noted{};
  };

  PlanTimesLimits limits_;
  std::string plan_and_nodes_;  // The plan and the nodes of the attempt.
  int ignored_ = 0;             // Steps of the attempt that do not count.
  int steps_ = 0;
  double counted_ = 0;  // Seconds of all steps that count.
  LastNumbers seconds_{2 * RunningMedian::window};
  LastNumbers computing_{2 * RunningMedian::window};
  std::map<std::string, Known> known_;
  std::vector<Time> tries_, changes_;  // Not older than `limits_.hold`.
};

}  // namespace troupe::actors
