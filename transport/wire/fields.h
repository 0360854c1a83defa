#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/result.h"
#include "core/value.h"
#include "transport/wire/message_types.h"
#include "transport/wire/wire.h"

/// Converts between the body of a message and a struct. The struct names its fields once:
///
///     /// Node to supervisor: the node is alive and has done this step.
///     struct Heartbeat {
///       static constexpr std::string_view type = "node.heartbeat";
///
///       std::string node;
///       std::int64_t step = 0;
///       std::optional<double> loss;
///
///       static constexpr auto fields() {
///         return std::tuple(required("node", &Heartbeat::node),
///                           required("step", &Heartbeat::step).at_least(0),
///                           optional("loss", &Heartbeat::loss));
///       }
///     };
///
///     Message message = to_message(Heartbeat{.node = "alpha", .step = 3});
///     Result<Heartbeat> beat = from_message<Heartbeat>(message);
///
/// A field may have one of these types:
///
/// - bool, an integer that fits its type, a finite floating-point number, std::string, Value;
/// - a duration that is not negative: an integer of nanoseconds on the wire;
/// - an enumeration: a text on the wire. Argument-dependent lookup finds
///   `std::array<std::string_view, N> enum_names(Mode)`, which names the values from 0 on;
/// - a struct with fields(), or a type that to_string() and from_text() convert to a text and back;
/// - a std::vector or std::optional of these.
///
/// An optional field that is absent keeps the default of the struct. The writer leaves out a
/// std::optional without a value. The reader skips unknown fields.
namespace troupe::transport {

template <class Struct, class Member>
struct Field {
  using Type = Member;
  enum class Presence { required, optional };

  std::string_view name;
  Member Struct::*member;
  Presence presence;
  std::optional<std::int64_t> least = std::nullopt;
  std::optional<std::int64_t> most = std::nullopt;

  /// Bounds a number, or each number in a list.
  constexpr Field at_least(std::int64_t bound) const {
    Field bounded = *this;
    bounded.least = bound;
    return bounded;
  }
  constexpr Field at_most(std::int64_t bound) const {
    Field bounded = *this;
    bounded.most = bound;
    return bounded;
  }
};

template <class Struct, class Member>
constexpr Field<Struct, Member> required(std::string_view name, Member Struct::*member) {
  return {name, member, Field<Struct, Member>::Presence::required};
}
template <class Struct, class Member>
constexpr Field<Struct, Member> optional(std::string_view name, Member Struct::*member) {
  return {name, member, Field<Struct, Member>::Presence::optional};
}

template <class T>
concept HasFields = requires {
  T::fields();
};
/// A type that converts to a text and back without loss, such as a digest.
template <class T>
concept HasText = requires(const T& value, std::string_view text, T& into) {
  { to_string(value) } -> std::convertible_to<std::string>;
  { from_text(text, into) } -> std::same_as<bool>;
};
template <class T>
concept NamedEnum = std::is_enum_v<T> && requires(T value) {
  enum_names(value);
};

namespace detail {

template <class T>
constexpr bool is_vector = false;
template <class T>
constexpr bool is_vector<std::vector<T>> = true;
template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;
template <class T>
constexpr bool is_duration = false;
template <class R, class P>
constexpr bool is_duration<std::chrono::duration<R, P>> = true;
template <class T>
constexpr bool always_false = false;

/// The place of a value in a body. Only an error makes a text of it.
struct Place {
  const Place* above = nullptr;
  std::string_view name = {};
  std::size_t number = 0;
  bool in_list = false;

  std::string text() const;
};

/// The bounds of a number in a field.
struct Bounds {
  std::optional<std::int64_t> least = std::nullopt;
  std::optional<std::int64_t> most = std::nullopt;
};

Error wrong(const Place& at, const Value& found, std::string_view wanted);
/// Reads an integer within these bounds and the bounds of its type.
Result<std::int64_t> read_integer(const Place& at, const Value& value, Bounds bounds);
Result<double> read_number(const Place& at, const Value& value, Bounds bounds);
/// Returns the index of a text in a list of names.
Result<std::size_t> read_name(const Place& at, const Value& value,
                              std::span<const std::string_view> names);

template <class T, class Fields>
Value write_fields(const T& from, const Fields& fields);
template <class T, class Fields>
Status read_fields(const Place& at, const Value& value, const Fields& fields, T& into);

template <class T>
Value write(const T& from) {
  if constexpr (std::same_as<T, bool> || std::same_as<T, std::string> || std::same_as<T, Value>)
    return from;
  else if constexpr (NamedEnum<T>)
    return enum_names(from).at(static_cast<std::size_t>(from));
  else if constexpr (std::integral<T>) {
    assert(std::in_range<std::int64_t>(from));  // The wire has 63 bits and a sign.
    return static_cast<std::int64_t>(from);
  } else if constexpr (std::floating_point<T>)
    return static_cast<double>(from);
  else if constexpr (is_duration<T>)
    return std::int64_t{std::chrono::duration_cast<std::chrono::nanoseconds>(from).count()};
  else if constexpr (is_optional<T>)
    return from ? write(*from) : Value();
  else if constexpr (is_vector<T>) {
    Value::List list;
    list.reserve(from.size());
    for (const auto& item : from) list.push_back(write<typename T::value_type>(item));
    return list;
  } else if constexpr (HasFields<T>)
    return write_fields(from, T::fields());
  else if constexpr (HasText<T>)
    return to_string(from);
  else
    static_assert(always_false<T>, "a field cannot be of this type");
}

template <class T>
Bounds within_type(Bounds bounds) {
  using Limits = std::numeric_limits<T>;
  const std::int64_t least = Limits::min();
  const std::int64_t most = std::in_range<std::int64_t>(Limits::max())
                                ? static_cast<std::int64_t>(Limits::max())
                                : std::numeric_limits<std::int64_t>::max();
  return {std::max(bounds.least.value_or(least), least),
          std::min(bounds.most.value_or(most), most)};
}

template <class T>
Status read(const Place& at, const Value& value, Bounds bounds, T& into) {
  if constexpr (std::same_as<T, bool>) {
    if (!value.boolean()) return wrong(at, value, "a boolean");
    into = *value.boolean();
  } else if constexpr (std::same_as<T, std::string>) {
    if (!value.text()) return wrong(at, value, "a string");
    into = *value.text();
  } else if constexpr (std::same_as<T, Value>) {
    into = value;
  } else if constexpr (NamedEnum<T>) {
    const auto names = enum_names(into);
    const auto index = read_name(at, value, names);
    if (!index) return index.error();
    into = static_cast<T>(*index);
  } else if constexpr (std::integral<T>) {
    const auto number = read_integer(at, value, within_type<T>(bounds));
    if (!number) return number.error();
    into = static_cast<T>(*number);
  } else if constexpr (std::floating_point<T>) {
    const auto number = read_number(at, value, bounds);
    if (!number) return number.error();
    into = static_cast<T>(*number);
  } else if constexpr (is_duration<T>) {
    const auto count =
        read_integer(at, value, {std::max<std::int64_t>(bounds.least.value_or(0), 0), bounds.most});
    if (!count) return count.error();
    into = std::chrono::duration_cast<T>(std::chrono::nanoseconds(*count));
  } else if constexpr (is_optional<T>) {
    into.reset();
    if (value.is_null()) return Done{};
    typename T::value_type held{};
    if (auto status = read(at, value, bounds, held); !status) return status;
    into = std::move(held);
  } else if constexpr (is_vector<T>) {
    if (!value.list()) return wrong(at, value, "a list");
    into.clear();
    into.reserve(value.list()->size());
    for (const auto& item : *value.list()) {
      typename T::value_type read_item{};
      const Place place{&at, {}, into.size(), true};
      if (auto status = read(place, item, bounds, read_item); !status) return status;
      into.push_back(std::move(read_item));
    }
  } else if constexpr (HasFields<T>) {
    return read_fields(at, value, T::fields(), into);
  } else if constexpr (HasText<T>) {
    if (!value.text() || !from_text(*value.text(), into))
      return wrong(at, value, "a text of its form");
  } else {
    static_assert(always_false<T>, "a field cannot be of this type");
  }
  return Done{};
}

template <class T, class Fields>
Value write_fields(const T& from, const Fields& fields) {
  Value::Map map;
  const auto add = [&](const auto& field) {
    Value value = write(from.*field.member);
    if (is_optional<typename std::remove_cvref_t<decltype(field)>::Type> && value.is_null()) return;
    map.push_back({std::string(field.name), std::move(value), {}});
  };
  std::apply([&](const auto&... field) { (add(field), ...); }, fields);
  return map;
}

template <class T, class Fields>
Status read_fields(const Place& at, const Value& value, const Fields& fields, T& into) {
  if (!value.map()) return wrong(at, value, "a table");
  Status status = Done{};
  const auto take = [&](const auto& field) {
    using OneField = std::remove_cvref_t<decltype(field)>;
    const Place place{&at, field.name};
    if (const Value* found = value.find(field.name))
      status = read(place, *found, Bounds{field.least, field.most}, into.*field.member);
    else if (field.presence == OneField::Presence::required)
      status = Error{place.text() + ": is missing"};
    return status.ok();
  };
  std::apply([&](const auto&... field) { (void)(take(field) && ...); }, fields);
  return status;
}

}  // namespace detail

/// Returns the fields as a map, in the order of fields().
template <HasFields T>
Value to_value(const T& from) {
  return detail::write_fields(from, T::fields());
}

/// Reads a struct from a map. An error text begins with `where`, such as "node.heartbeat.body".
template <HasFields T>
Result<T> from_value(const Value& value, std::string_view where) {
  T into{};
  if (auto status = detail::read_fields({nullptr, where}, value, T::fields(), into); !status)
    return status.error();
  return into;
}

/// Returns a message that has only the struct's type and its fields.
template <HasFields T>
Message to_message(const T& from) {
  static_assert(has_row(T::type), "add a row to transport/wire/message_types.h");
  Message message;
  message.type = T::type;
  message.body = to_value(from);
  return message;
}

/// Reads the body of a message, which must have the struct's type.
template <HasFields T>
Result<T> from_message(const Message& message) {
  static_assert(has_row(T::type), "add a row to transport/wire/message_types.h");
  assert(message.type == T::type);
  std::string where(T::type);
  where.append(".body");
  return from_value<T>(message.body, where);
}

}  // namespace troupe::transport
