#pragma once

#include <string_view>

#include "core/value.h"

namespace troupe::config {

/// Returns the value at a dotted name, such as "optimizer.schedule.kind", or null if there is none.
const Value* value_at(const Value& tree, std::string_view name);
/// Sets the value at a dotted name. Creates missing tables on the way.
void set_at(Value& tree, std::string_view name, Value value);

}  // namespace troupe::config
