#include "models/kinds/option.h"

#include <algorithm>

namespace troupe::models {
namespace {

bool within_bounds(const Option& option, double number) {
  return number >= option.least && number <= option.most;
}

bool fits(const Option& option, const Value& value) {
  switch (option.type) {
    case Option::Type::integer:
      return value.integer() && within_bounds(option, value.number());
    case Option::Type::number:
      return value.is_number() && within_bounds(option, value.number());
    case Option::Type::boolean:
      return value.boolean() != nullptr;
    case Option::Type::text:
      return value.text() != nullptr;
    case Option::Type::integers:
      return value.list() &&
             std::all_of(value.list()->begin(), value.list()->end(), [&](const Value& item) {
               return item.integer() && within_bounds(option, item.number());
             });
  }
  return false;
}

}  // namespace

Result<Value> complete(std::span<const Option> options, const Value& given) {
  Value table = given;
  for (const auto& option : options) {
    const std::string name(option.name);
    const Value* value = table.find(name);
    if (!value && option.fallback.is_null())
      return Error{"model." + name + " is missing: " + std::string(option.help)};
    if (!value) value = &table.set(name, option.fallback);
    if (!fits(option, *value))
      return Error{"model." + name + " is " + std::string(describe(value->kind())) +
                   " out of bounds or of the wrong type: " + std::string(option.help)};
  }
  return table;
}

}  // namespace troupe::models
