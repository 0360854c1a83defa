#pragma once

#include <string>

#include "schedules/simulate/timeline.h"

namespace troupe::schedules {

/// Writes the timeline for Perfetto and chrome://tracing. Each device is a process with a track for
/// computing and, if there are such spans, for sending, receiving and reducing (several if spans
/// overlap). Arrows lead from producers to consumers; a counter shows the bytes held. The first
/// span begins at 0.
std::string to_trace(const Timeline& timeline);

}  // namespace troupe::schedules
