#pragma once

#include <algorithm>
#include <cassert>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/schema/dotted.h"
#include "config/schema/key.h"
#include "core/units.h"
#include "core/value.h"

/// A configuration key is declared once, in fields() of the struct that holds its value:
///
///     struct Log {
///       std::int64_t every = 10;
///
///       static Fields<Log> fields() {
///         return {
///             field(&Log::every, {.name = "log.every", .fallback = 10, .least = 1, .help =
///             "..."}),
///         };
///       }
///     };
///
/// The schema and everything generated from it then have the key, and read_fields() fills the
/// member.
namespace troupe::config {

/// A key and the function that stores its value in a struct.
template <class Struct>
struct Field {
  Key key;
  std::function<void(const Value&, Struct&)> read = {};  // Empty: other code reads the key.
};
template <class Struct>
using Fields = std::vector<Field<Struct>>;

namespace detail {

template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;

/// Reads a validated value. It aborts on a value of another type, which would be a bug.
template <class T>
void read_value(const Key& key, const Value& value, T& into) {
  const auto text = [&]() -> const std::string& {
    assert(value.text() && "the tree was not validated");
    return *value.text();
  };
  if constexpr (is_optional<T>) {
    using Held = typename T::value_type;
    into.reset();
    if constexpr (!std::same_as<Held, std::string>)
      if (value.text() && text() == "auto") return;
    Held held{};
    read_value(key, value, held);
    into = std::move(held);
  } else if constexpr (std::same_as<T, bool>) {
    assert(value.boolean() && "the tree was not validated");
    into = *value.boolean();
  } else if constexpr (std::same_as<T, std::string>) {
    into = text();
  } else if constexpr (std::is_enum_v<T>) {
    // Choices have the order of the enumeration.
    const auto choice = std::ranges::find(key.choices, text());
    assert(choice != key.choices.end() && "the tree was not validated");
    into = static_cast<T>(choice - key.choices.begin());
  } else if constexpr (std::integral<T>) {
    if (key.type == Type::bytes_or_auto) {
      into = static_cast<T>(*parse_bytes(text()));
    } else {
      assert(value.integer() && "the tree was not validated");
      into = static_cast<T>(*value.integer());
    }
  } else if constexpr (std::floating_point<T>) {
    into = value.number();
  } else if constexpr (std::same_as<T, std::chrono::nanoseconds>) {
    into = *parse_duration(text());
  } else if constexpr (std::same_as<T, Interval>) {
    into = *parse_interval(text());
  } else {
    static_assert(std::same_as<T, CountRange>, "a key cannot have this type");
    if (const auto* count = value.integer())
      into = {static_cast<int>(*count), static_cast<int>(*count)};
    else
      into = *parse_range(text());
  }
}

}  // namespace detail

/// Declares a key whose value goes into a member. A member of an optional type is empty if the
/// value is "auto".
template <class Struct, class Member>
Field<Struct> field(Member Struct::*member, Key key) {
  auto read = [member, key](const Value& value, Struct& into) {
    detail::read_value(key, value, into.*member);
  };
  return {std::move(key), std::move(read)};
}

/// Fills a struct from a complete tree. A member keeps its default if the tree lacks its key.
template <class Struct>
void read_fields(const Value& complete, const Fields<Struct>& fields, Struct& into) {
  for (const auto& [key, read] : fields)
    if (const Value* value = value_at(complete, key.name); value && read) read(*value, into);
}

/// Adds the keys of a struct to a table of keys.
template <class Struct>
void add_keys(std::vector<Key>& keys, const Fields<Struct>& fields) {
  for (const auto& field : fields) keys.push_back(field.key);
}

}  // namespace troupe::config
