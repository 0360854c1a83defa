#pragma once

#include <string>
#include <string_view>

namespace troupe::config {

/// Returns a text for a cell of a table in Markdown: pipes, which would end the cell, are escaped.
inline std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace troupe::config
