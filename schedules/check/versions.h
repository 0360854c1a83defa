#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "schedules/schedule.h"

namespace troupe::schedules {

/// The weight version that a pass reads. Version 0 is the initial one; every O makes the next.
enum class VersionRule : std::uint8_t {
  stash,  // F reads the newest; R and B or I read the version of their F.
  lag,  // All passes of the micro-batches between two O's read the version before the one that the
        // first of these O's makes.
  newest,  // Every pass reads the newest.
};

/// The limits that a schedule declares for staleness and weight versions.
struct VersionLimits {
  VersionRule rule = VersionRule::stash;
  int staleness = 0;
  int copies = 1;
};

/// The weight versions of one stage on one device.
struct VersionTrace {
  int stage = 0;
  int device = 0;
  /// The staleness of each backward pass in device order: the number of O's between the version
  /// that the micro-batch first reads and the O that applies its gradient.
  std::vector<int> staleness;
  /// The most versions kept at once, including the newest.
  int copies = 1;
};

/// Replays a valid schedule and returns one trace for each stage of each device. Returns an error
/// if a pass needs a version that does not exist yet.
Result<std::vector<VersionTrace>> replay_versions(const Schedule& schedule, VersionRule rule);

}  // namespace troupe::schedules
