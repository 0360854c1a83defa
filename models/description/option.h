#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/value.h"

namespace troupe::models {

/// A configuration key that a model declares. Validation, help and the reference page read it.
struct Option {
  enum class Type { integer, number, boolean, choice, text, integers };

  std::string name;
  Type type = Type::integer;
  Value fallback{};  // Null: the user must give the key.
  double least = 0;  // Bounds of a number, or of each number of a list.
  double most = 1e9;
  std::vector<std::string> among{};  // For a choice.
  std::string help{};                // One sentence.
  /// Came after the first release of its kind of models. Recipes and checkpoints leave it out if it
  /// has its fallback, so that older ones stay the same.
  bool is_later = false;
};

/// Returns the option that kinds of models share under this name, such as `vocab`, or null.
const Option* find_common_option(std::string_view name);

/// Returns whether a value has the option's type and lies within its bounds.
bool fits(const Option& option, const Value& value);

/// Returns the table without the later options that have their fallback.
Value without_later(std::span<const Option> options, Value table);

/// Returns the table with the fallback of every missing key. Reports an error if a value has the
/// wrong type or is out of bounds. For tables that did not come through a configuration.
Result<Value> complete(std::span<const Option> options, const Value& given);

}  // namespace troupe::models
