#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/value.h"

namespace troupe::apps {

/// Upper bounds that suit the seconds of steps, recoveries and saves alike, and those of waits
/// within a step.
constexpr std::array<double, 16> usual_bounds = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 100, 1000};
constexpr std::array<double, 16> wait_bounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                                0.01,   0.025,   0.05,   0.1,   0.25,   0.5,
                                                1,      2.5,     10,     100};

/// Counts of durations in seconds, by upper bounds.
struct Histogram {
  /// `upper` outlives it.
  explicit Histogram(std::span<const double> upper = usual_bounds)
      : bounds(upper), counts(upper.size()) {}

  void add(double seconds);

  std::span<const double> bounds;
  std::vector<std::int64_t> counts;  // Up to each bound, and above the one before.
  std::int64_t count = 0;            // Includes those above the last bound.
  double sum = 0;
};

/// The node that sends, and the one that waits.
using LinkEnds = std::pair<std::string, std::string>;

/// The numbers in a run's events, for one life of the head.
struct RunNumbers {
  std::int64_t steps = 0;     // Steps done, repeated ones too.
  std::int64_t repeated = 0;  // Steps that recoveries repeated.
  std::int64_t seen = 0;      // Tokens of these steps, or samples if it has no tokens.
  std::int64_t recoveries = 0;
  std::int64_t checkpoints = 0;
  std::int64_t warnings = 0;
  Histogram step_seconds;
  Histogram recovery_seconds;
  Histogram save_seconds;
  /// How long nodes waited for each other in each step of the plan in force.
  std::map<LinkEnds, Histogram> link_waits;
  std::optional<double> planned_at;  // When that plan came into force, if it is not the first one.
  // A value is absent if no event told it.
  std::optional<double> rate, grad_norm, lr, bubble, memory;  // In the newest step.
  std::optional<double> saved_at;  // When the newest checkpoint was complete; seconds since 1970.
  std::optional<double> pace;      // The median of the last steps' seconds.
};

/// Makes these numbers from the events. Any thread.
class RunCounters {
 public:
  void add(const Value& event);
  RunNumbers numbers() const;

 private:
  void add_step(const Value& event);
  void add_waits(const Value& event);

  mutable std::mutex mutex_;
  RunNumbers numbers_;
  std::deque<double> recent_;  // The seconds of the last steps.
};

}  // namespace troupe::apps
