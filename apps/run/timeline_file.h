#pragma once

#include <string>

#include "core/result.h"
#include "schedules/simulate/timeline.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// Writes what the devices did in the run's last rounds to runs/NAME/timeline.jsonl: a JSON line
/// with the number of devices, then one for each action. Replaces an existing file.
Status write_timeline(storage::Files& files, const std::string& path,
                      const schedules::Timeline& timeline);
Result<schedules::Timeline> read_timeline(storage::Files& files, const std::string& path);

}  // namespace troupe::apps
