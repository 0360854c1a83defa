#pragma once

#include <string>
#include <vector>

#include "actors/run_spec.h"
#include "apps/run/run_setup.h"
#include "config/run_config.h"
#include "core/memory/memory_pool.h"
#include "core/result.h"
#include "core/value.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// A run, before anything of it is played.
struct RunToBegin {
  const config::RunConfig& config;
  const RunSetup& setup;
  const Value& recipe;
  storage::Files& files;  // Of its checkpoints.
  MemoryPool& memory;     // For what is read.
  std::string id = {};    // Whose checkpoints count; empty: those of any run.
};

// From where a run begins. What does not fit it is an error before anything is started.

/// Weights as the configuration says: random, or from a file.
Result<actors::StartPoint> first_state(const RunToBegin& run);

struct Resumed {
  actors::StartPoint start;
  std::vector<std::string> warnings;  // That the user should hear.
};
/// What a run that is resumed does if its ledger says that a step is saved, and there is no
/// checkpoint: a folder that is not mounted looks just like that.
enum class SavesGone { refuse, begin_anew };

/// From the newest checkpoint that verifies; from the beginning where no step was ever saved.
Result<Resumed> resumed_state(const RunToBegin& run, SavesGone saves_gone);

}  // namespace troupe::apps
