#pragma once

#include <map>
#include <string>
#include <vector>

#include "actors/nodes/node_messages.h"
#include "core/value.h"

namespace troupe::apps {

/// The GPUs of a node in such an answer, where it has told of any.
std::vector<actors::GpuReading> gpus_of(const Value& node);
/// The nodes of an answer to `status` or `node.list`, a line each, and one for each of their GPUs.
std::string nodes_table(const Value& answer);
/// The runs of an answer to `status` or `run.list`. `speeds` are steps per second by run, where
/// they are known.
std::string runs_table(const Value& answer, const std::map<std::string, double>& speeds = {});

}  // namespace troupe::apps
