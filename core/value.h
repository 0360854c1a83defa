#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// A 1-based position in a text. Line 0 means no position.
struct Position {
  int line = 0;
  int column = 0;

  friend bool operator==(const Position&, const Position&) = default;
};

/// A tree of values like those of TOML, JSON and msgpack: a configuration, a manifest, a message
/// body. Maps keep the insertion order of their keys.
class Value {
 public:
  struct Entry;
  using List = std::vector<Value>;
  using Map = std::vector<Entry>;
  enum class Kind { null, boolean, integer, number, text, list, map };

  Value();
  Value(bool value);
  Value(std::int64_t value);
  Value(int value);
  Value(double value);
  Value(std::string value);
  Value(std::string_view value);
  Value(const char* value);
  Value(List value);
  Value(Map value);
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();

  Kind kind() const { return static_cast<Kind>(held_.index()); }
  bool is_null() const { return kind() == Kind::null; }

  /// Each returns null if the value has another kind.
  const bool* boolean() const { return std::get_if<bool>(&held_); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&held_); }
  const std::string* text() const { return std::get_if<std::string>(&held_); }
  const List* list() const { return std::get_if<List>(&held_); }
  List* list() { return std::get_if<List>(&held_); }
  const Map* map() const { return std::get_if<Map>(&held_); }
  Map* map() { return std::get_if<Map>(&held_); }
  /// Returns true for integers too.
  bool is_number() const { return kind() == Kind::integer || kind() == Kind::number; }
  double number() const;

  /// Returns the entry of a map, or null if this is not a map or has no such key.
  const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
  /// Sets the entry of a map. A null value becomes a map.
  Value& set(std::string key, Value value);

  /// The position of the value in the text it was read from.
  Position position;

  /// Compares contents, including order, but not positions.
  friend bool operator==(const Value& a, const Value& b);

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Map> held_;
};

struct Value::Entry {
  std::string key;
  Value value;
  Position position;  // The position of the key.

  friend bool operator==(const Entry& a, const Entry& b) {
    return a.key == b.key && a.value == b.value;
  }
};

/// Each returns a map's value at a key, or empty or 0 if there is none of that kind.
std::string text_in(const Value& map, std::string_view key);
std::int64_t integer_in(const Value& map, std::string_view key);
double number_in(const Value& map, std::string_view key);

/// Returns "a table", "a list", "a number", ... for messages.
std::string_view describe(Value::Kind kind);

}  // namespace troupe
