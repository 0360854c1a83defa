#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.h"
#include "core/digest.h"
#include "core/value.h"

namespace troupe::config {

/// Returns whether a key of a complete tree affects the results of training. The pipeline's shape
/// and `staleness` do so only in an asynchronous run. A schedule file counts as asynchronous.
bool is_recipe(const Key& key, const Value& tree);

/// Returns the recipe half of a complete tree. First replace each "auto" by the chosen value
/// (set_at).
Value recipe_of(const Value& tree);

/// Returns the recipe without what decides only steps after `step`: changes of the learning rate,
/// phases of a mixture, and steps that are left out.
Value recipe_until(Value recipe, std::int64_t step);

/// Returns one line for each key. Equal recipes have the same text, also after they were stored.
std::string recipe_text(const Value& recipe);
Digest recipe_digest(const Value& recipe);

/// Returns the differences between two recipes, one line a key: "batch.global = 32, was 64".
std::vector<std::string> recipe_changes(const Value& now, const Value& before);

}  // namespace troupe::config
