#pragma once

#include <string>

#include "core/result.h"
#include "schedules/simulate/timeline.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// What the devices of a run did in its last rounds, as runs/NAME/timeline.jsonl has it: a line of
/// JSON that says how many devices there are, then one for each action. Replaces a file that is
/// there.
Status write_timeline(storage::Files& files, const std::string& path,
                      const schedules::Timeline& timeline);
Result<schedules::Timeline> read_timeline(storage::Files& files, const std::string& path);

}  // namespace troupe::apps
