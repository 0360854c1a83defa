#pragma once

#include <string>

#include "core/result.h"
#include "schedules/plan/holdings.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// Writes what each device holds by the plan to runs/NAME/memory.jsonl: a JSON line that describes
/// the plan, then one for each holding. Replaces an existing file.
Status write_memory(storage::Files& files, const std::string& path,
                    const schedules::RunMemory& memory);
Result<schedules::RunMemory> read_memory(storage::Files& files, const std::string& path);

}  // namespace troupe::apps
