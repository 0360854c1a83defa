#pragma once

#include <string>

#include "core/value.h"

namespace troupe::apps {

/// Returns what a person reads of an event other than a step.
std::string sentence(const Value& event);

/// Returns what slows a run down, from an event `node.straggler` that is not over, without the
/// node.
std::string straggler_text(const Value& event);

}  // namespace troupe::apps
