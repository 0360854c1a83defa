#pragma once

#include <span>

#include "models/registry.h"

namespace troupe::config {

/// What other folders add to the schema: the kinds of models with their keys.
struct Catalog {
  std::span<const models::ModelKind> model_kinds;
};

/// All that this program knows.
Catalog built_in_catalog();

}  // namespace troupe::config
