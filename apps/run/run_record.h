#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/load.h"
#include "core/result.h"
#include "core/value.h"
#include "storage/files/files.h"

namespace troupe::apps {

// What the folder of a run says about the run, so that it can be repeated later. Each file is
// written whole or not at all.

/// Writes config.toml: the resolved configuration, which `troupe train` takes again. `tree` has
/// everything in it that was chosen here.
Status keep_config(storage::Files& files, const std::string& folder, const config::Loaded& loaded,
                   Value tree);

/// Writes config.toml, about.json and, if data has a tokenizer, tokenizer.json, when a process
/// begins to lead the run after `step` steps. about.json keeps one entry for each such process; a
/// config.toml that differs is kept as config.1.toml, config.2.toml and so on. A run goes on
/// without them: returns warnings that say which file could not be written.
std::vector<std::string> describe_run(storage::Files& files, const std::string& folder,
                                      const config::Loaded& loaded, Value tree, std::int64_t step);

}  // namespace troupe::apps
