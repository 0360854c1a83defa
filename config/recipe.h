#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.h"
#include "core/digest.h"
#include "core/value.h"

namespace troupe::config {

/// Whether a key of a complete tree changes numbers. In an asynchronous run the shape of the
/// pipeline does; in a synchronous one `staleness` does not. Of a schedule in a file nothing is
/// known, so it counts as asynchronous.
bool is_recipe(const Key& key, const Value& tree);

/// That half of a complete tree. Where a key says "auto", put what was chosen there first (set_at).
Value recipe_of(const Value& tree);

/// What of a recipe made the weights after so many steps: without the changes that come later.
Value recipe_until(Value recipe, std::int64_t step);

/// A line for each key, the same for equal recipes however they were kept meanwhile.
std::string recipe_text(const Value& recipe);
Digest recipe_digest(const Value& recipe);

/// How two recipes differ, a line for each key: "batch.global = 32, was 64". Empty where they do
/// not.
std::vector<std::string> recipe_changes(const Value& now, const Value& before);

}  // namespace troupe::config
