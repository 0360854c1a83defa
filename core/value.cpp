#include "core/value.h"

#include <cassert>

namespace troupe {

Value::Value(List value) : held_(std::move(value)) {}
Value::Value(Map value) : held_(std::move(value)) {}

double Value::number() const {
  assert(is_number());
  if (const auto* whole = integer()) return static_cast<double>(*whole);
  return std::get<double>(held_);
}

const Value* Value::find(std::string_view key) const {
  if (const auto* entries = map())
    for (const auto& entry : *entries)
      if (entry.key == key) return &entry.value;
  return nullptr;
}

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(std::as_const(*this).find(key));
}

Value& Value::set(std::string key, Value value) {
  if (is_null()) held_ = Map{};
  if (auto* present = find(key)) return *present = std::move(value);
  map()->push_back({std::move(key), std::move(value), {}});
  return map()->back().value;
}

std::string_view describe(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::null:
      return "nothing";
    case Value::Kind::boolean:
      return "a boolean";
    case Value::Kind::integer:
      return "an integer";
    case Value::Kind::number:
      return "a number";
    case Value::Kind::text:
      return "a string";
    case Value::Kind::list:
      return "a list";
    case Value::Kind::map:
      return "a table";
  }
  return "?";
}

}  // namespace troupe
