#pragma once

#include <string>

#include "config/schema.h"
#include "core/value.h"

namespace troupe::config {

/// Why a value is not what its key wants, as one sentence; empty where it is.
std::string complaint(const Key& key, const Value& value);

/// What was probably meant in its place; empty where nothing is near.
std::string suggestion(const Key& key, const Value& value);

/// "a string \"auto\"", "a list [1, 2]": for messages.
std::string found_text(const Value& value);

}  // namespace troupe::config
