#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"

namespace troupe::apps {

/// Variables and their values in order. Names are unique.
using Environment = std::vector<std::pair<std::string, std::string>>;

/// Parses a `.deepspeed_env`: NAME=VALUE in each line, where the value extends to the line's end.
/// Skips empty lines and lines that begin with '#'. A later line overrides an earlier one.
Result<Environment> parse_environment(std::string_view text, const std::string& name);

/// Reads `.deepspeed_env` from the home folder and from the working folder, as DeepSpeed does; the
/// working folder's file wins. Returns an empty list if neither exists.
Result<Environment> read_deepspeed_env();

}  // namespace troupe::apps
