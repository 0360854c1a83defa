#pragma once

#include <cstdint>
#include <optional>

#include "schedules/check/check.h"
#include "schedules/schedule.h"

namespace troupe::schedules {

/// Plays the lanes with tokens for tensors, in a random order of devices, and returns whether all
/// lanes end. Without buffers, tensors arrive at once and are consumed in any order. With buffers,
/// each queue is first in, first out and bounded. Independent of the checker's graphs.
bool plays_to_the_end(const Schedule& schedule, const std::optional<Buffers>& buffers,
                      std::uint64_t seed);

}  // namespace troupe::schedules
