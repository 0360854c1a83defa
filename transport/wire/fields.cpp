#include "transport/wire/fields.h"

namespace troupe::transport::detail {
namespace {

/// "a string", "12": numbers as they are, as that is what they are refused for.
std::string found_text(const Value& value) {
  if (const auto* integer = value.integer()) return std::to_string(*integer);
  if (value.kind() == Value::Kind::number) return shortest(value.number());
  return std::string(describe(value.kind()));
}

std::string range_text(const Bounds& bounds) {
  constexpr auto smallest = std::numeric_limits<std::int64_t>::min();
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  const bool from_below = bounds.least.value_or(smallest) != smallest;
  const bool from_above = bounds.most.value_or(largest) != largest;
  if (from_below && from_above)
    return " between " + std::to_string(*bounds.least) + " and " + std::to_string(*bounds.most);
  if (from_below) return " of at least " + std::to_string(*bounds.least);
  if (from_above) return " of at most " + std::to_string(*bounds.most);
  return "";
}

}  // namespace

std::string Place::text() const {
  std::string out = above ? above->text() : "";
  if (in_list) return out + "[" + std::to_string(number) + "]";
  if (!out.empty()) out += ".";
  return out += name;
}

Error wrong(const Place& at, const Value& found, std::string_view wanted) {
  return {at.text() + ": found " + found_text(found) + ", wanted " + std::string(wanted)};
}

Result<std::int64_t> read_integer(const Place& at, const Value& value, Bounds bounds) {
  const auto* integer = value.integer();
  if (!integer || (bounds.least && *integer < *bounds.least) ||
      (bounds.most && *integer > *bounds.most))
    return wrong(at, value, "an integer" + (integer ? range_text(bounds) : ""));
  return *integer;
}

Result<double> read_number(const Place& at, const Value& value, Bounds bounds) {
  if (!value.is_number() || !std::isfinite(value.number()) ||
      (bounds.least && value.number() < static_cast<double>(*bounds.least)) ||
      (bounds.most && value.number() > static_cast<double>(*bounds.most)))
    return wrong(at, value, "a finite number" + (value.is_number() ? range_text(bounds) : ""));
  return value.number();
}

Result<std::size_t> read_name(const Place& at, const Value& value,
                              std::span<const std::string_view> names) {
  if (!value.text()) return wrong(at, value, "a string");
  const auto found = std::ranges::find(names, *value.text());
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string wanted;
  for (const auto name : names) wanted += (wanted.empty() ? "" : ", ") + std::string(name);
  constexpr std::size_t most = 40;
  return Error{at.text() + ": found \"" + value.text()->substr(0, most) + "\", wanted one of " +
               wanted};
}

}  // namespace troupe::transport::detail
