#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/host_facts.h"
#include "apps/run/run_setup.h"
#include "config/load.h"
#include "core/env.h"
#include "core/result.h"
#include "core/value.h"
#include "storage/files/files.h"

namespace troupe::apps {

// Files in a run's folder that describe the run, so that it can be repeated. Each file is written
// atomically.

/// Writes config.toml, the resolved configuration, which `troupe train` accepts. `tree` contains
/// all choices that were made here.
Status keep_config(storage::Files& files, const std::string& folder, const config::Loaded& loaded,
                   Value tree);

/// A key of a run that trains longer, and its value.
struct LongerKey {
  std::string name;
  std::int64_t value = 0;
};
/// Returns the keys with which a run, as its folder describes it, trains `more` steps beyond its
/// last one. The schedule of its learning rate stays: it ends where it was to end, and further
/// steps have its last rate.
Result<std::vector<LongerKey>> keys_to_extend(storage::Files& files, const std::string& folder,
                                              std::int64_t more);

/// A process that begins to lead a run.
struct RunLife {
  Env::WallTime begun;
  const HostFacts& host;
  std::int64_t step = 0;  // The steps that were done before.
  const RunSetup& setup;
};

/// Writes config.toml, about.json and, if the data has a tokenizer, tokenizer.json, when a process
/// begins to lead the run. about.json has one entry for each such process; a
/// config.toml that differs is kept as config.1.toml, config.2.toml and so on. A run continues
/// without these files: returns warnings that name the files which could not be written.
std::vector<std::string> describe_run(storage::Files& files, const std::string& folder,
                                      const config::Loaded& loaded, Value tree,
                                      const RunLife& life);

}  // namespace troupe::apps
