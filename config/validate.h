#pragma once

#include "config/toml/diagnostics.h"
#include "core/value.h"

namespace troupe::config {

/// Checks each key by itself: its name, type and bounds. Returns the complete tree in the schema's
/// order, with defaults for missing keys. If `found` gets an error, the tree must not be used.
Value validate(const Value& tree, Diagnostics& found);

}  // namespace troupe::config
