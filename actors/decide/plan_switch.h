#pragma once

#include <cstdint>
#include <vector>

#include "actors/decide/detector.h"

namespace troupe::actors::decide {

/// The times at which nodes joined or left in the last hour.
class NodeChanges {
 public:
  explicit NodeChanges(Time begun) : begun_(begun) {}

  void add(Time now);
  /// Returns the expected time until a node joins or leaves.
  Duration time_to_next(Time now) const;

 private:
  Time begun_;
  std::vector<Time> times_;
};

/// A change to another plan while a run plays.
struct PlanSwitch {
  double rate = 0;         // Steps per second with the plan in force,
  double better_rate = 0;  // and with the other one.
  std::int64_t steps_left = 0;
  Duration time_to_next_change{};  // Until a node joins or leaves.
  int saves_since_last = 1 << 20;  // Saves since the last switch.
};

struct SwitchLimits {
  /// The estimated cost of a switch: to save, and to begin the next attempt.
  Duration cost = std::chrono::milliseconds(200);
  double least_gain = 0.03;
  int saves_between = 2;  // The least distance between switches.
};

/// Returns whether another plan is worth the cost of a switch.
bool pays(const PlanSwitch& plan_switch, const SwitchLimits& limits);

}  // namespace troupe::actors::decide
