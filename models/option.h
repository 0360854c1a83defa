#pragma once

#include <string_view>

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

}  // namespace troupe::models
