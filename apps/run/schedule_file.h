#pragma once

#include <string>

#include "config/run_config.h"
#include "core/result.h"
#include "schedules/schedule.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// Reads a schedule file. The ending selects the format: .csv, .json, or else the text form.
Result<schedules::Schedule> read_schedule(storage::Files& files, const std::string& path);

/// Reads the schedule file that `pipeline.schedule` names, if any, and rejects a schedule that no
/// plan can use.
Status check_schedule_file(storage::Files& files, const config::RunConfig::Pipeline& pipeline);

}  // namespace troupe::apps
