#pragma once

#include <span>
#include <string_view>

#include "core/result.h"
#include "core/value.h"

namespace troupe::models {

/// A key of the configuration that a model declares: the row that validation, help and the
/// reference page are made from.
struct Option {
  enum class Type { integer, number, boolean, text, integers };

  std::string_view name;
  Type type = Type::integer;
  Value fallback{};  // Null: the key must be given.
  double least = 0;  // Of a number, or of each number of a list.
  double most = 1e9;
  std::string_view help;  // One sentence.
};

/// A table with the fallbacks of all keys that are not given; what is given must be of its type and
/// within its bounds. For tables that did not come through a configuration.
Result<Value> complete(std::span<const Option> options, const Value& given);

}  // namespace troupe::models
