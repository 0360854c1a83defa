#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/value.h"

namespace troupe::config {

/// A place in a text that the TOML library must not get to see.
struct TomlTrouble {
  Position position;
  std::string why;
};

/// Whether a key may have it without quotes.
bool is_bare_key_character(char c);

/// The library (3.3) bounds how deep lists and inline tables are nested, but not the parts of a
/// dotted key; and where no character beyond ASCII may stand, it does not expect one, not even in
/// quotes or brackets that are in the middle of a number. This is looked through first; nothing
/// else about a text is judged.
std::optional<TomlTrouble> find_toml_trouble(std::string_view text);

}  // namespace troupe::config
