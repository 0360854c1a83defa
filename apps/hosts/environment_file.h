#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"

namespace troupe::apps {

/// Variables and their values, in order; no name comes twice.
using Environment = std::vector<std::pair<std::string, std::string>>;

/// A `.deepspeed_env`: NAME=VALUE a line, the value as it stands up to the line's end; empty lines
/// and those that begin with '#' are for people. A later line wins.
Result<Environment> parse_environment(std::string_view text, const std::string& name);

/// What `.deepspeed_env` of the home folder and of this one say, as DeepSpeed reads it; this
/// folder's wins. Nothing where there is none.
Result<Environment> read_deepspeed_env();

}  // namespace troupe::apps
