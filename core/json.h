#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "core/value.h"

namespace troupe {

/// What a reader accepts from a text that it does not trust.
struct JsonLimits {
  std::size_t bytes = std::size_t{256} << 20;
  int depth = 64;
};

/// Any text gives a value or an error that begins with "line:column: ". Every value and key knows
/// its position. A key that comes twice in one object is an error.
Result<Value> parse_json(std::string_view text, const JsonLimits& limits = {});

/// On one line; numbers in their shortest form that reads back equal. A number that JSON cannot
/// say (NaN, infinity) becomes null.
std::string to_json(const Value& value);

/// The same over several lines, two blanks a level.
std::string to_json_lines(const Value& value);

/// What stands at a key of a map, as one reads it: a text as it is, all else as JSON; empty where
/// there is nothing.
std::string text_of(const Value& map, std::string_view key);

/// The shortest form that reads back equal: "0.1", "3e-4", "12".
std::string shortest(double number);

}  // namespace troupe
