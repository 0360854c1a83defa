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

/// A run before any of it was started.
struct RunToBegin {
  const config::RunConfig& config;
  const RunSetup& setup;
  const Value& recipe;
  storage::Files& files;  // The file system of its checkpoints.
  MemoryPool& memory;     // The pool for tensors that are read.
  std::string id = {};    // The id whose checkpoints count; empty: those of any run.
};

// Functions that return the state from which a run begins. A state that does not fit the run is an
// error before anything is started.

/// Returns weights as configured: random, or from a file.
Result<actors::StartPoint> first_state(const RunToBegin& run);

struct Resumed {
  actors::StartPoint start;
  std::vector<std::string> warnings;  // Warnings for the user.
};
/// The behavior of a resumed run whose ledger says that a step was saved, while there is no
/// checkpoint. A folder that is not mounted looks the same.
enum class SavesGone { refuse, begin_anew };

/// Returns the state of the newest checkpoint that verifies, or the initial state if no step was
/// ever saved.
Result<Resumed> resumed_state(const RunToBegin& run, SavesGone saves_gone);

}  // namespace troupe::apps
