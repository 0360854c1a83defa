#pragma once

#include <string>
#include <vector>

#include "apps/console.h"

namespace troupe::apps {

/// Lists the runs below runs/ in the working folder, the newest first.
ExitCode list_local_runs(const CommonFlags& flags);

/// Removes the folders of runs with everything in them, unless a process writes to them.
ExitCode remove_runs(const std::vector<std::string>& runs, const CommonFlags& flags);

}  // namespace troupe::apps
