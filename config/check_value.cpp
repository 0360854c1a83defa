#include "config/check_value.h"

#include <algorithm>
#include <cmath>

#include "config/toml/toml.h"
#include "core/text.h"
#include "core/units.h"

namespace troupe::config {
namespace {

bool in_bounds(const Key& key, double number) {
  return std::isfinite(number) && number >= key.least && number <= key.most;
}

bool is_whole(const Key& key, const Value& value) {
  return value.integer() && in_bounds(key, value.number());
}

bool is_number(const Key& key, const Value& value) {
  return value.is_number() && in_bounds(key, value.number());
}

bool is_auto(const Value& value) { return value.text() && *value.text() == "auto"; }

bool is_choice(const Key& key, const Value& value) {
  const auto* text = value.text();
  return text && std::find(key.choices.begin(), key.choices.end(), *text) != key.choices.end();
}

template <class Check>
bool is_list(const Key& key, const Value& value, Check check) {
  const auto* list = value.list();
  return list && !list->empty() && (key.length == 0 || list->size() == key.length) &&
         std::all_of(list->begin(), list->end(),
                     [&](const Value& item) { return check(key, item); });
}

bool is_boundaries(const Key& key, const Value& value) {
  constexpr std::int64_t most_layers = 1'000'000;
  const auto* list = value.list();
  if (!list || list->size() < 2 || list->size() - 1 > static_cast<std::size_t>(key.most))
    return false;
  std::int64_t last = -1;
  for (const auto& item : *list) {
    if (!item.integer() || *item.integer() <= last || *item.integer() > most_layers) return false;
    last = *item.integer();
  }
  return *list->front().integer() == 0;
}

/// Returns why a text cannot be parsed as the key's type, or an empty text if it can.
std::string unreadable(Type type, const std::string& text) {
  const auto why = [](const auto& result) { return result ? "" : result.error().text; };
  switch (type) {
    case Type::duration:
      return why(parse_duration(text));
    case Type::interval:
      return why(parse_interval(text));
    case Type::range:
      return why(parse_range(text));
    case Type::bytes_or_auto:
      return text == "auto" ? "" : why(parse_bytes(text));
    case Type::integer:
    case Type::number:
    case Type::boolean:
    case Type::switches:
    case Type::text:
    case Type::choice:
    case Type::texts:
    case Type::integers:
    case Type::numbers:
    case Type::count_or_auto:
    case Type::stages:
    case Type::description:
    case Type::groups:
      return {};
  }
  return {};
}

/// Returns whether a value fits its key. A text must be one that unreadable() accepts.
bool is_legal(const Key& key, const Value& value) {
  const auto* text = value.text();
  switch (key.type) {
    case Type::integer:
      return is_whole(key, value);
    case Type::number:
      return is_number(key, value);
    case Type::boolean:
      return value.boolean();
    case Type::switches:
      return value.boolean() || is_list(key, value, [](const Key&, const Value& item) {
               return item.boolean() != nullptr;
             });
    case Type::text:
      return text;
    case Type::choice:
      return is_choice(key, value);
    case Type::texts:
      return is_list(key, value, [](const Key&, const Value& item) {
        return item.text() && !item.text()->empty();
      });
    case Type::integers:
      return is_list(key, value, is_whole);
    case Type::numbers:
      return is_list(key, value, is_number);
    case Type::duration:
      return text && in_bounds(key, static_cast<double>(parse_duration(*text)->count()));
    case Type::interval:
      return text;
    case Type::range: {
      if (!text) return is_whole(key, value);
      const auto range = *parse_range(*text);
      return in_bounds(key, range.fewest) && in_bounds(key, range.most);
    }
    case Type::count_or_auto:
      return is_auto(value) || is_whole(key, value);
    case Type::bytes_or_auto:
      return is_auto(value) || (text && in_bounds(key, static_cast<double>(*parse_bytes(*text))));
    case Type::stages:
      return is_auto(value) || is_whole(key, value) || is_boundaries(key, value);
    case Type::description:
      return value.map();
    case Type::groups:
      return value.list() && std::ranges::all_of(*value.list(), [](const Value& table) {
               return table.map() != nullptr;
             });
  }
  return false;
}

/// Returns whether the value exceeds a bound that wanted() does not mention.
bool exceeds(const Key& key, const Value& value) {
  if (const auto* list = value.list())
    return std::any_of(list->begin(), list->end(),
                       [&](const Value& item) { return exceeds(key, item); });
  return bound_is_untold(key) && value.is_number() && value.number() > key.most;
}

}  // namespace

std::string complaint(const Key& key, const Value& value) {
  if (const auto* text = value.text())
    if (const auto why = unreadable(key.type, *text); !why.empty()) return key.name + ": " + why;
  if (is_legal(key, value)) return {};
  return key.name + " wants " + wanted(key) + ", but found " + found_text(value) +
         (exceeds(key, value) ? ", which is more than " + number_text(key.most) : "");
}

std::string suggestion(const Key& key, const Value& value) {
  const bool takes_whole = key.type == Type::integer || key.type == Type::count_or_auto ||
                           key.type == Type::range || key.type == Type::stages;
  constexpr double most_exact = 1e15;
  if (const double number = value.is_number() ? value.number() : 0.5;
      takes_whole && !value.integer() && number == std::floor(number) &&
      std::abs(number) < most_exact)
    return "write " + number_text(number);
  if (key.type != Type::choice || !value.text()) return {};
  if (*value.text() == "gpu" && std::ranges::count(key.choices, "cuda") > 0)
    return "'cuda' is the GPU";
  const auto near = nearest(*value.text(), key.choices);
  return near.empty() ? "" : "did you mean '" + std::string(near) + "'?";
}

std::string found_text(const Value& value) {
  constexpr std::size_t longest = 60;
  if (value.is_null()) return "nothing";
  const std::string text = to_toml(value);
  return std::string(describe(value.kind())) + (text.size() <= longest ? " " + text : "");
}

}  // namespace troupe::config
