#pragma once

#include <string>
#include <string_view>

#include "core/value.h"

namespace troupe {

/// The text of a stranger as it may be shown on a terminal, in one line of a log, or in an event.
/// Line breaks and tabs become spaces. Other control characters, marks that change the direction of
/// writing, and bytes that are no UTF-8 become '?'. Printable text stays as it is.
std::string printable(std::string_view text);

/// The same for all texts in a value, keys included.
void make_printable(Value& value);

}  // namespace troupe
