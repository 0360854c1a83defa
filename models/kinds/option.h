#pragma once

#include <span>
#include <string_view>

#include "core/result.h"
#include "core/value.h"

namespace troupe::models {

/// A configuration key that a model declares. Validation, help and the reference page read it.
struct Option {
  enum class Type { integer, number, boolean, text, integers };

  std::string_view name;
  Type type = Type::integer;
  Value fallback{};  // Null: the user must give the key.
  double least = 0;  // Bounds of a number, or of each number of a list.
  double most = 1e9;
  std::string_view help;  // One sentence.
};

/// Returns the table with the fallback of every missing key. Reports an error if a value has the
/// wrong type or is out of bounds. For tables that did not come through a configuration.
Result<Value> complete(std::span<const Option> options, const Value& given);

}  // namespace troupe::models
