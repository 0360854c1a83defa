#pragma once

#include <optional>
#include <vector>

#include "core/value.h"
#include "models/description/fault.h"
#include "models/description/option.h"

namespace troupe::models {

/// Reads what a description says about its options: `common`, `fallback` and `options`. Returns the
/// first fault.
std::optional<Fault> read_options(const Value& tree, std::vector<Option>& into);

/// Returns the value of an option without its place: in a configuration it is not written anywhere.
Value without_places(Value value);

/// Returns whether a word can be the name of an option, a value or a variable.
bool is_name(std::string_view word);

}  // namespace troupe::models
