#pragma once

#include <string>

#include "core/result.h"
#include "schedules/plan/holdings.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// What each device of a run holds by its plan, as runs/NAME/memory.jsonl has it: a line of JSON
/// that says what the plan is, then one for each holding. Replaces a file that is there.
Status write_memory(storage::Files& files, const std::string& path,
                    const schedules::RunMemory& memory);
Result<schedules::RunMemory> read_memory(storage::Files& files, const std::string& path);

}  // namespace troupe::apps
