#pragma once

#include <string>
#include <string_view>

#include "core/value.h"

namespace troupe {

/// Makes untrusted text safe to show on a terminal, in a line of a log or in an event. Line breaks
/// and tabs become spaces. Other control characters, marks that change the direction of writing,
/// and bytes that are not UTF-8 become '?'. Other text stays unchanged.
std::string printable(std::string_view text);

/// Applies printable() to all texts in a value, including keys.
void make_printable(Value& value);

}  // namespace troupe
