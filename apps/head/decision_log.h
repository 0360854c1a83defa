#pragma once

#include <string>

#include "actors/nodes/remote_players.h"
#include "core/result.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// What earlier heads have decided for a run, in its folder, and where this one writes down what it
/// decides. `files` outlives them.
Result<actors::DecisionLog> open_decision_log(storage::Files& files, const std::string& folder);

}  // namespace troupe::apps
