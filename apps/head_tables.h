#pragma once

#include <map>
#include <string>

#include "core/value.h"

namespace troupe::apps {

/// The nodes of an answer to `status` or `node.list`, a line each.
std::string nodes_table(const Value& answer);
/// The runs of an answer to `status` or `run.list`. `speeds` are steps per second by run, where
/// they are known.
std::string runs_table(const Value& answer, const std::map<std::string, double>& speeds = {});

}  // namespace troupe::apps
