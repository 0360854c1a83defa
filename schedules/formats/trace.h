#pragma once

#include <string>

#include "schedules/simulate/timeline.h"

namespace troupe::schedules {

/// The timeline as Perfetto and chrome://tracing read it: a process for each device; in it a track
/// for computing, one for each of sending, receiving and reducing where there is any (several where
/// spans overlap), arrows from producers to consumers, and a counter of the bytes held. The first
/// span begins at 0.
std::string to_trace(const Timeline& timeline);

}  // namespace troupe::schedules
