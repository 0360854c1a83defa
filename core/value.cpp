#include "core/value.h"

#include <cassert>

namespace troupe {

// Defined here because Entry, which holds a Value, is incomplete inside the class.
Value::Value() = default;
Value::Value(bool value) : held_(value) {}
Value::Value(std::int64_t value) : held_(value) {}
Value::Value(int value) : held_(std::int64_t{value}) {}
Value::Value(double value) : held_(value) {}
Value::Value(std::string value) : held_(std::move(value)) {}
Value::Value(std::string_view value) : held_(std::string(value)) {}
Value::Value(const char* value) : held_(std::string(value)) {}
Value::Value(List value) : held_(std::move(value)) {}
Value::Value(Map value) : held_(std::move(value)) {}
Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;

bool operator==(const Value& a, const Value& b) { return a.held_ == b.held_; }

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

std::string text_in(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  return value && value->text() ? *value->text() : std::string();
}

std::int64_t integer_in(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  return value && value->integer() ? *value->integer() : 0;
}

double number_in(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  return value && value->is_number() ? value->number() : 0;
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
