#pragma once

#include "core/result.h"
#include "core/value.h"
#include "schedules/schedule.h"

namespace troupe::schedules {

/// The fields of the canonical text as a tree, for tools:
/// {"sched": 1, "name": "1f1b", "devices": 2, "stages": 2, "micro_batches": 1,
///  "routes": [[0, 1]], "route_of": [0], "lanes": [["0F0", "0B0"], ["1F0", "1B0"]]}.
/// A group is one text, "(0F1+1B0)".
Value to_value(const Schedule& schedule);

/// Reads that tree back. Errors begin with the position if the tree was read from a text.
Result<Schedule> schedule_from(const Value& value);

}  // namespace troupe::schedules
