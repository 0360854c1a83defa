#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/value.h"

namespace troupe::apps {

/// Prints an answer to `stacks` for people: a title for each process, and below it its threads with
/// the functions that they are in, the innermost first, at most this many of each.
std::string stacks_text(const Value& answer, std::size_t most_frames);

/// Returns the processes that have not told their stacks, and why: "node beta: it has not answered
/// within 3 s".
std::vector<std::string> silent_processes(const Value& answer);

}  // namespace troupe::apps
