#pragma once

#include <optional>
#include <string>

#include "schedules/formats/pprof.h"
#include "schedules/plan/holdings.h"
#include "schedules/simulate/timeline.h"

namespace troupe::schedules {

/// Profiles the memory of a run's devices by stage, unit and purpose. With a timeline, adds their
/// time by stage and kind of action, and idle time.
///
/// The result is one profile with three measures: memory, time and actions. A sample has either
/// memory or time and actions. Viewers hide samples that are 0 in the measure shown. One file is
/// simpler for users than two.
StackProfile run_profile(const RunMemory& memory, const std::optional<Timeline>& timeline);

}  // namespace troupe::schedules
