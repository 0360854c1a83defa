#pragma once

#include <optional>
#include <string>

#include "schedules/formats/pprof.h"
#include "schedules/plan/holdings.h"
#include "schedules/simulate/timeline.h"

namespace troupe::schedules {

/// What a run's devices hold, by stage, unit and purpose, and where there is a timeline, what they
/// do, by stage and kind of action, beside the time in which they do nothing.
///
/// It is one profile with three measures, memory, time and actions, where a sample is of memory or
/// of the two others. Viewers leave out what is 0 in the measure that they show, as they do with
/// the samples of a heap profile that are freed by then; and with two files one would have to know
/// which to open.
StackProfile run_profile(const RunMemory& memory, const std::optional<Timeline>& timeline);

}  // namespace troupe::schedules
