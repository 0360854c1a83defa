#pragma once

#include <string>

#include "core/result.h"
#include "schedules/schedule.h"

namespace troupe::apps {

/// A file by its ending: .csv, .json, and the text form for all others.
Result<schedules::Schedule> read_schedule(const std::string& path);

}  // namespace troupe::apps
