#pragma once

#include <cstdint>
#include <optional>

#include "schedules/check/check.h"
#include "schedules/schedule.h"

namespace troupe::schedules {

/// Plays the lanes with tokens for tensors, devices in an order that the seed draws, and says
/// whether all of them come to their end. Without buffers, tensors come at once and may be taken in
/// any order; with them, each queue is first in, first out and as long as they say. Knows nothing
/// of the checker's graphs.
bool plays_to_the_end(const Schedule& schedule, const std::optional<Buffers>& buffers,
                      std::uint64_t seed);

}  // namespace troupe::schedules
