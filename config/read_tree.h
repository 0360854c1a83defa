#pragma once

#include <cassert>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "config/schema.h"
#include "core/units.h"
#include "core/value.h"

namespace troupe::config {

/// Typed access to a tree that was validated: a value of another type is a bug of ours.
class TreeReader {
 public:
  explicit TreeReader(const Value& tree) : tree_(tree) {}

  bool has(std::string_view name) const { return value_at(tree_, name) != nullptr; }
  const Value& value(std::string_view name) const {
    const Value* found = value_at(tree_, name);
    assert(found && "the tree is not complete");
    return *found;
  }
  const std::string& text(std::string_view name) const { return checked(value(name).text()); }
  bool boolean(std::string_view name) const { return checked(value(name).boolean()); }
  double number(std::string_view name) const { return value(name).number(); }
  std::int64_t integer(std::string_view name) const { return checked(value(name).integer()); }
  /// Of a key whose bounds an int holds.
  int small(std::string_view name) const { return static_cast<int>(integer(name)); }
  /// Nothing where it says "auto".
  std::optional<std::int64_t> count(std::string_view name) const {
    const auto* found = value(name).integer();
    return found ? std::optional(*found) : std::nullopt;
  }
  std::chrono::nanoseconds duration(std::string_view name) const {
    return *parse_duration(text(name));
  }

  template <class Enum>
  Enum choice(std::string_view name,
              std::initializer_list<std::pair<std::string_view, Enum>> choices) const {
    for (const auto& [word, meaning] : choices)
      if (word == text(name)) return meaning;
    assert(false && "a choice of the schema has no meaning");
    return {};
  }

 private:
  template <class T>
  static const T& checked(const T* held) {
    assert(held && "the tree was not validated");
    return *held;
  }

  const Value& tree_;
};

}  // namespace troupe::config
