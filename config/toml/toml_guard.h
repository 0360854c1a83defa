#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/value.h"

namespace troupe::config {

/// A place in a text that the TOML library cannot handle.
struct TomlTrouble {
  Position position;
  std::string why;
};

/// Returns whether an unquoted key may contain the character.
bool is_bare_key_character(char c);

/// Finds text that breaks the library (3.3). It limits the depth of lists and inline tables, but
/// not the parts of a dotted key. It also fails on characters beyond ASCII where none may be, even
/// inside quotes or brackets in the middle of a number. Nothing else is checked.
std::optional<TomlTrouble> find_toml_trouble(std::string_view text);

}  // namespace troupe::config
