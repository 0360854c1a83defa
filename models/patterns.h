#pragma once

#include <string_view>

namespace troupe::models {

/// Returns whether a pattern matches a whole name: `*` stands for any text, `?` for one character.
bool matches_pattern(std::string_view pattern, std::string_view name);

}  // namespace troupe::models
