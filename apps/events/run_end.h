#pragma once

#include <string_view>

namespace troupe::apps {

/// Returns whether a run in this state has ended: "done", "stopped" or "failed".
inline bool has_run_ended(std::string_view state) {
  return state == "done" || state == "stopped" || state == "failed";
}

}  // namespace troupe::apps
