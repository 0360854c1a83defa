#pragma once

#include <string>

#include "config/schema.h"
#include "core/value.h"

namespace troupe::config {

/// Returns one sentence that says why a value does not fit its key, or an empty text if it fits.
std::string complaint(const Key& key, const Value& value);

/// Returns what the user probably meant, or an empty text if nothing is similar.
std::string suggestion(const Key& key, const Value& value);

/// Describes a value in messages: "a string \"auto\"", "a list [1, 2]".
std::string found_text(const Value& value);

}  // namespace troupe::config
