#pragma once

#include <map>
#include <string>

#include "apps/events/run_counters.h"
#include "core/value.h"

namespace troupe::apps {

/// Returns a head's metrics in the text format of Prometheus. `status` is the answer to `status`,
/// and `numbers` has those of the active runs by name. What is not known has no sample.
std::string metrics_of(const Value& status, const std::map<std::string, RunNumbers>& numbers);

}  // namespace troupe::apps
