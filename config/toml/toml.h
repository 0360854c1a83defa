#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "core/value.h"

namespace troupe::config {

/// Any text gives a tree or an error that begins with "line:column: ". Keys keep the order in which
/// they stand in the text; every value and key knows its position, columns counted in bytes.
Result<Value> parse_toml(std::string_view text);

/// A value as one writes it behind `key =`: tables are inline. A null is an empty table.
std::string to_toml(const Value& value);

/// A key as one writes it: quoted only where it must be.
std::string to_toml_key(std::string_view key);

}  // namespace troupe::config
