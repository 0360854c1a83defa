#include "core/units.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace troupe {
namespace {

// Writers take the first unit that divides the number. Decimal sizes come after "B", so that only
// parsers use them.
constexpr std::array time_units = {
    MeasureUnit{"d", 86400e9}, MeasureUnit{"h", 3600e9}, MeasureUnit{"m", 60e9},
    MeasureUnit{"s", 1e9},     MeasureUnit{"ms", 1e6},   MeasureUnit{"us", 1e3},
    MeasureUnit{"ns", 1},
};
constexpr std::array size_units = {
    MeasureUnit{"TiB", 0x1p40}, MeasureUnit{"GiB", 0x1p30}, MeasureUnit{"MiB", 0x1p20},
    MeasureUnit{"KiB", 0x1p10}, MeasureUnit{"B", 1},        MeasureUnit{"TB", 1e12},
    MeasureUnit{"GB", 1e9},     MeasureUnit{"MB", 1e6},     MeasureUnit{"kB", 1e3},
};

constexpr double century = 100.0 * 365 * 86400e9;  // Fits into 64 bits as nanoseconds.
constexpr double exabyte = 0x1p60;

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::optional<std::int64_t> parse_count(std::string_view text) {
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc{} || rest != end || count < 0) return {};
  return count;
}

}  // namespace

std::span<const MeasureUnit> byte_units() { return size_units; }

std::optional<double> parse_quantity(std::string_view text, std::span<const MeasureUnit> units,
                                     std::chars_format format) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, format);
  if (error != std::errc{} || !std::isfinite(number) || std::signbit(number)) return {};
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& candidate : units)
    if (unit == candidate.name) return number * candidate.size;
  return {};
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto found = parse_quantity(text, time_units);
  if (!found)
    return Error{"found " + quoted(text) +
                 ", which is no duration; write a number and its unit (ms, s, m, h, d): \"5m\""};
  if (*found > century) return Error{"found " + quoted(text) + "; at most 100 years can be waited"};
  return std::chrono::nanoseconds(std::llround(*found));
}

std::string duration_text(std::chrono::nanoseconds duration) {
  for (const auto& unit : time_units) {
    const auto size = static_cast<std::int64_t>(unit.size);
    if (duration.count() % size == 0 && (duration.count() != 0 || unit.name == "s"))
      return std::to_string(duration.count() / size) + std::string(unit.name);
  }
  return std::to_string(duration.count()) + "ns";
}

Result<std::int64_t> parse_bytes(std::string_view text) {
  const auto found = parse_quantity(text, size_units);
  if (!found)
    return Error{"found " + quoted(text) +
                 ", which is no size; write a number and its unit (B, KiB, MiB, GiB, TiB, kB, MB, "
                 "GB, TB): \"2GiB\""};
  if (*found > exabyte) return Error{"found " + quoted(text) + "; the largest size is 1024 PiB"};
  return static_cast<std::int64_t>(std::llround(*found));
}

std::string bytes_text(std::int64_t bytes) {
  for (const auto& unit : size_units) {
    const auto size = static_cast<std::int64_t>(unit.size);
    if (bytes >= size && bytes % size == 0)
      return std::to_string(bytes / size) + std::string(unit.name);
  }
  return std::to_string(bytes) + "B";
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t least_rounded = 10'000;
  const std::string exact = counted(bytes, "byte");
  for (const auto& unit : size_units) {
    const auto size = static_cast<std::uint64_t>(unit.size);
    if (!unit.name.ends_with("iB") || bytes < size) continue;
    if (bytes % size == 0) return std::to_string(bytes / size) + " " + std::string(unit.name);
    if (bytes < least_rounded) return exact;
    std::array<char, 32> rounded{};
    std::snprintf(rounded.data(), rounded.size(), "%.1f ", static_cast<double>(bytes) / unit.size);
    return rounded.data() + std::string(unit.name) + " (" + exact + ")";
  }
  return exact;
}

std::string detail::gib_text(double bytes, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f GiB", decimals, bytes / 0x1p30);
  return text.data();
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
    return Error{"found " + quoted(text) + ", wanted \"100 steps\", or a duration such as \"5m\""};
  if (time->count() == 0) return Error{"found " + quoted(text) + "; an interval must not be 0"};
  return Interval{.time = *time};
}

std::string to_text(const Interval& interval) {
  if (interval.steps == 0) return duration_text(interval.time);
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

}  // namespace troupe
