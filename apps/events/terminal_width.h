#pragma once

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>

namespace troupe::apps {

/// Returns the width of the terminal now, since a person may change it; nothing if the stream
/// writes to none.
std::optional<std::size_t> columns_of(std::FILE* stream);

/// Returns whether the stream writes to a terminal that can move its cursor, as TERM tells.
bool has_screen(std::FILE* stream);

/// How a text is laid out for a stream. Files and other programs get lines of any length and no
/// colours.
struct TextForm {
  std::size_t columns = std::string::npos;
  bool has_colours = false;
};

/// Returns the form for what a stream writes to. A terminal gets no colours if TERM is "dumb" or if
/// a person has set NO_COLOR.
TextForm form_of(std::FILE* stream);

/// Prints a text to stdout. A terminal gets no line that is wider than itself: lines are broken
/// between words. Files and other programs get the lines as they are.
void print_wrapped(const std::string& text);

/// Prints the lines of a list to stdout. A line that is too wide for a terminal continues below its
/// last column.
void print_columns(const std::string& text);

}  // namespace troupe::apps
