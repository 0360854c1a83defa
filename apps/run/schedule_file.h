#pragma once

#include <string>

#include "config/run_config.h"
#include "core/result.h"
#include "schedules/schedule.h"

namespace troupe::apps {

/// A file by its ending: .csv, .json, and the text form for all others.
Result<schedules::Schedule> read_schedule(const std::string& path);

/// Reads the schedule file that `pipeline.schedule` names, if it names one, and rejects what no
/// plan can use.
Status check_schedule_file(const config::RunConfig::Pipeline& pipeline);

}  // namespace troupe::apps
