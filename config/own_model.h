#pragma once

#include "config/toml/diagnostics.h"
#include "config/toml/sources.h"
#include "core/value.h"
#include "models/description/fault.h"

namespace troupe::config {

/// Returns the diagnostic of a fault in model.description.
Diagnostic diagnostic_of(const models::Fault& fault, const Sources& sources);

/// Checks the description of a model of one's own, if the tree has one.
void check_description(const Value& tree, const Sources& sources, Diagnostics& found);

}  // namespace troupe::config
