#pragma once

#include <optional>
#include <vector>

#include "schedules/schedule.h"

namespace troupe::schedules {

/// The pass that starts first if both a forward and a backward pass are ready.
enum class Preference { backward_first, forward_first, as_listed };

/// The costs and limits for re-timing, in any unit. No time may be negative.
struct RetimeSettings {
  struct Stage {
    double forward = 1;
    double backward = 2;  // A fused B.
    double input = 1;
    double weight = 1;
    double stash = 1;  // Held from the forward pass until the W or B that frees it.
  };

  std::vector<Stage> stages;  // One for each stage of the base.
  double hop = 0;             // Between two devices. A hop within a device takes no time.
  std::vector<double> caps;   // The stash limit of each device.
  double patience = 0;  // A pass due within this fraction of a W is awaited before the W runs.
  Preference preference = Preference::backward_first;
};

/// Simulates the base greedily with these costs and lists the resulting order. Each device keeps
/// the order of its F's and of its B's and I's, and fills gaps with W's, oldest first. Dissolves
/// groups. Always succeeds if every cap is at least the base's peak; otherwise returns nothing at a
/// dead end. The base must be valid and hold only passes.
std::optional<Schedule> retime(const Schedule& base, const RetimeSettings& settings);

/// Returns each device's largest stash while it plays its lane. Groups allocate before they free.
std::vector<double> peak_stash(const Schedule& schedule, const RetimeSettings& settings);

}  // namespace troupe::schedules
