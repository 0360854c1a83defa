#pragma once

#include <string>

#include "actors/nodes/remote_players.h"
#include "core/result.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// Opens the decisions of a run in its folder: reads those of earlier heads, and appends new ones.
/// `earlier`: the folder of an earlier run of this name, whose attempts are numbered before those
/// of this run; empty if there is none. `files` outlives the result.
Result<actors::DecisionLog> open_decision_log(storage::Files& files, const std::string& folder,
                                              const std::string& earlier = {});

}  // namespace troupe::apps
