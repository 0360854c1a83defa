#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "core/value.h"

namespace troupe::config {

/// Parses TOML. An error begins with "line:column: ". Keys keep their order in the text. Each value
/// and key has its position, with columns in bytes.
Result<Value> parse_toml(std::string_view text);

/// Writes a value as it follows `key =`, with inline tables. Null becomes an empty table.
std::string to_toml(const Value& value);

/// Writes a key, in quotes only if it needs them.
std::string to_toml_key(std::string_view key);

}  // namespace troupe::config
