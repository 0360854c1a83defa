#pragma once

#include <string>

#include "core/value.h"

namespace troupe::apps {

/// Prints an answer to `probe` for people: a row for each way and carrier.
std::string links_text(const Value& answer);

}  // namespace troupe::apps
