#pragma once

#include <optional>
#include <vector>

#include "schedules/schedule.h"

namespace troupe::schedules {

/// Which pass goes first where both a forward and a backward pass could start.
enum class Preference { backward_first, forward_first, as_listed };

/// What re-timing plans with. Units are the caller's; no time may be negative.
struct RetimeSettings {
  struct Stage {
    double forward = 1;
    double backward = 2;  // A fused B.
    double input = 1;
    double weight = 1;
    double stash = 1;  // What a forward pass keeps until the W or B that frees it.
  };

  std::vector<Stage> stages;  // One for each stage of the base.
  double hop = 0;             // Between two devices; a hop within a device takes no time.
  std::vector<double> caps;   // On the stash of each device.
  double patience = 0;  // Wait for a pass that is closer than this part of a W instead of that W.
  Preference preference = Preference::backward_first;
};

/// Plays the base greedily against the costs and lists what then happened: each device keeps the
/// order of its F's and that of its B's and I's, and fills the gaps with its W's, oldest first.
/// Groups are dissolved. Never fails where every cap is at least the base's own peak; with less it
/// may reach a dead end, and then gives none. The base must hold passes only, and be valid.
std::optional<Schedule> retime(const Schedule& base, const RetimeSettings& settings);

/// The largest stash of each device while it plays its lane, groups allocating before they free.
std::vector<double> peak_stash(const Schedule& schedule, const RetimeSettings& settings);

}  // namespace troupe::schedules
