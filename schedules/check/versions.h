#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "schedules/schedule.h"

namespace troupe::schedules {

/// Which weights a pass sees. Version 0 is there at the start; every O makes the next.
enum class VersionRule : std::uint8_t {
  stash,   // F reads the newest, R and B or I what their F read.
  lag,     // Micro-batches between two O's read, in all passes, the version before the one that the
           // first of these O's makes.
  newest,  // Every pass reads the newest.
};

/// What a schedule promises about its weights.
struct VersionLimits {
  VersionRule rule = VersionRule::stash;
  int staleness = 0;
  int copies = 1;
};

/// What the weights of one stage on one device go through.
struct VersionTrace {
  int stage = 0;
  int device = 0;
  /// O's between the version that a micro-batch reads first and the O that its gradient goes into,
  /// in the order of the device's backward passes.
  std::vector<int> staleness;
  /// Most versions that are kept at once, the newest included.
  int copies = 1;
};

/// Replays a valid schedule, and gives an entry for each stage of each device. An error where a
/// pass needs a version that is not yet made.
Result<std::vector<VersionTrace>> replay_versions(const Schedule& schedule, VersionRule rule);

}  // namespace troupe::schedules
