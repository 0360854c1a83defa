#pragma once

#include <string>
#include <vector>

#include "config/catalog.h"
#include "core/digest.h"
#include "core/value.h"

namespace troupe::config {

/// The half of a complete tree that changes numbers, and nothing else: sections in the schema's
/// order. In an asynchronous run the shape of the pipeline belongs to it.
Value recipe_of(const Value& tree, const Catalog& catalog = built_in_catalog());

/// Canonical: one line for each key.
std::string recipe_text(const Value& recipe);
Digest recipe_digest(const Value& recipe);

/// How two recipes differ, one line for each key: "batch.global: 32, was 64". Empty where they
/// do not.
std::vector<std::string> recipe_changes(const Value& now, const Value& before);

}  // namespace troupe::config
