#pragma once

#include <string>
#include <vector>

#include "config/load.h"
#include "core/result.h"
#include "storage/files/files.h"

/// Live changes that decide a run's numbers, kept in runs/NAME/changes.toml. A run that resumes
/// from any of its checkpoints then computes the same numbers.
namespace troupe::apps {

/// Writes the changes and syncs them to disk.
Status keep_changes(storage::Files& files, const config::Loaded& loaded);

/// Merges the kept changes into the configuration of a resumed run. Returns a line for each key of
/// the configuration that does not count, because a change is in its place.
Result<std::vector<std::string>> take_changes(storage::Files& files, config::Loaded& loaded);

}  // namespace troupe::apps
