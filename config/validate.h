#pragma once

#include "config/toml/diagnostics.h"
#include "core/value.h"

namespace troupe::config {

/// Checks each key by itself: that it exists, that its value is of its type and within its bounds.
/// Gives the complete tree in the schema's order, with defaults for what was not written; where
/// `found` gains an error, the tree is of no further use.
Value validate(const Value& tree, Diagnostics& found);

}  // namespace troupe::config
