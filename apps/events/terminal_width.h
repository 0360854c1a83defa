#pragma once

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>

namespace troupe::apps {

/// Returns the width of the terminal now, since a person may change it; nothing if the stream
/// writes to none.
std::optional<std::size_t> columns_of(std::FILE* stream);

/// Prints a text to stdout. A terminal gets no line that is wider than itself: lines are broken
/// between words. Files and other programs get the lines as they are.
void print_wrapped(const std::string& text);

}  // namespace troupe::apps
