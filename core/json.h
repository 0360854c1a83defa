#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "core/value.h"

namespace troupe {

/// Limits for parsing untrusted text.
struct JsonLimits {
  std::size_t bytes = std::size_t{256} << 20;
  int depth = 64;
};

/// Parses any text into a value or an error that begins with "line:column: ". Every value and key
/// knows its position. A key that occurs twice in one object is an error.
Result<Value> parse_json(std::string_view text, const JsonLimits& limits = {});

/// Writes a value on one line, with numbers in the shortest form that reads back equal. NaN and
/// infinity, which JSON cannot express, become null.
std::string to_json(const Value& value);

/// Writes a value over several lines with two spaces of indentation per level.
std::string to_json_lines(const Value& value);

/// Returns the value at a map's key for display: a string without quotes, anything else as JSON,
/// and an empty string if the key is missing.
std::string text_of(const Value& map, std::string_view key);

/// Returns the shortest form that reads back equal: "0.1", "3e-4", "12".
std::string shortest(double number);

}  // namespace troupe
