#include "config/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace troupe::config {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

// The largest first: what is written takes the first that divides.
constexpr std::array time_units = {
    Unit{"d", 86400e9}, Unit{"h", 3600e9}, Unit{"m", 60e9}, Unit{"s", 1e9},
    Unit{"ms", 1e6},    Unit{"us", 1e3},   Unit{"ns", 1},
};
constexpr std::array byte_units = {
    Unit{"TiB", 0x1p40}, Unit{"GiB", 0x1p30}, Unit{"MiB", 0x1p20},
    Unit{"KiB", 0x1p10}, Unit{"B", 1},        Unit{"TB", 1e12},
    Unit{"GB", 1e9},     Unit{"MB", 1e6},     Unit{"kB", 1e3},
};

constexpr double century = 100.0 * 365 * 86400e9;  // Well within 64 bits of nanoseconds.
constexpr double exabyte = 0x1p60;

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

/// Number and unit with nothing else around them but one blank between.
template <std::size_t count>
std::optional<double> parse_quantity(std::string_view text, const std::array<Unit, count>& units) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || std::signbit(number)) return {};
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& candidate : units)
    if (unit == candidate.name) return number * candidate.size;
  return {};
}

std::optional<std::int64_t> parse_count(std::string_view text) {
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc{} || rest != end || count < 0) return {};
  return count;
}

}  // namespace

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto found = parse_quantity(text, time_units);
  if (!found)
    return Error{"found " + quoted(text) +
                 ", which is no duration; write a number and its unit (ms, s, m, h, d): \"5m\""};
  if (*found > century) return Error{"found " + quoted(text) + "; at most 100 years can be waited"};
  return std::chrono::nanoseconds(std::llround(*found));
}

std::string to_text(std::chrono::nanoseconds duration) {
  for (const auto& unit : time_units) {
    const auto size = static_cast<std::int64_t>(unit.size);
    if (duration.count() % size == 0 && (duration.count() != 0 || unit.name == "s"))
      return std::to_string(duration.count() / size) + std::string(unit.name);
  }
  return std::to_string(duration.count()) + "ns";
}

Result<std::int64_t> parse_bytes(std::string_view text) {
  const auto found = parse_quantity(text, byte_units);
  if (!found)
    return Error{"found " + quoted(text) +
                 ", which is no size; write a number and its unit (B, KiB, MiB, GiB, TiB, kB, MB, "
                 "GB, TB): \"2GiB\""};
  if (*found > exabyte) return Error{"found " + quoted(text) + "; at most 1024 PiB can be said"};
  return static_cast<std::int64_t>(std::llround(*found));
}

std::string bytes_text(std::int64_t bytes) {
  for (const auto& unit : byte_units) {
    const auto size = static_cast<std::int64_t>(unit.size);
    if (bytes >= size && bytes % size == 0)
      return std::to_string(bytes / size) + std::string(unit.name);
  }
  return std::to_string(bytes) + "B";
}

Result<Interval> parse_interval(std::string_view text) {
  for (const std::string_view unit : {" steps", " step"})
    if (text.ends_with(unit)) {
      const auto count = parse_count(text.substr(0, text.size() - unit.size()));
      if (!count || *count == 0)
        return Error{"found " + quoted(text) + "; write how many steps, 1 or more: \"100 steps\""};
      return Interval{.steps = *count};
    }
  const auto time = parse_duration(text);
  if (!time)
    return Error{"found " + quoted(text) +
                 ", which is neither; write \"100 steps\", or a duration such as \"5m\""};
  if (time->count() == 0) return Error{"found " + quoted(text) + "; never is no interval"};
  return Interval{.time = *time};
}

std::string to_text(const Interval& interval) {
  if (interval.steps == 0) return to_text(interval.time);
  return std::to_string(interval.steps) + (interval.steps == 1 ? " step" : " steps");
}

Result<CountRange> parse_range(std::string_view text) {
  const auto colon = text.find(':');
  const auto fewest = parse_count(text.substr(0, colon));
  const auto most = colon == text.npos ? fewest : parse_count(text.substr(colon + 1));
  const std::int64_t limit = std::numeric_limits<int>::max();
  if (!fewest || !most || *fewest > limit || *most > limit)
    return Error{"found " + quoted(text) + "; write the fewest and the most: \"1:8\""};
  if (*fewest > *most)
    return Error{"found " + quoted(text) + ", where the fewest are more than the most"};
  return CountRange{static_cast<int>(*fewest), static_cast<int>(*most)};
}

std::string to_text(CountRange range) {
  return std::to_string(range.fewest) + ":" + std::to_string(range.most);
}

}  // namespace troupe::config
