#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "actors/nodes/node_messages.h"
#include "apps/events/terminal_width.h"
#include "core/value.h"

namespace troupe::apps {

/// Returns a list of an answer; an empty one if it has none.
const Value::List& list_in(const Value& answer, const char* key);
/// Returns the GPU readings of a node in an answer; empty if the node has reported none.
std::vector<actors::GpuReading> gpus_of(const Value& node);
/// Formats the nodes of an answer to `status` or `node.list`: a line for each node and one for each
/// of its GPUs.
std::string nodes_table(const Value& answer, const TextForm& form = {});
/// Formats the runs of an answer to `status` or `run.list`. If there are speeds, in steps per
/// second, the table has them, and its columns stay where they are as a run goes on. If the
/// terminal has too few columns, places of runs are below their rows; if these are still too long,
/// they have no goodput.
std::string runs_table(const Value& answer, const TextForm& form = {},
                       const std::map<std::string, double>& speeds = {});

}  // namespace troupe::apps
