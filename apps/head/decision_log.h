#pragma once

#include <string>

#include "actors/nodes/remote_players.h"
#include "core/result.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// Opens the decisions of a run in its folder: reads those of earlier heads, and appends new ones.
/// `files` outlives the result.
Result<actors::DecisionLog> open_decision_log(storage::Files& files, const std::string& folder);

}  // namespace troupe::apps
