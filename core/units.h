#pragma once

#include <charconv>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace troupe {

namespace detail {
std::string gib_text(double bytes, int decimals);
}

/// Converts a duration to the seconds of messages and events.
template <class Number, class Period>
double in_seconds(std::chrono::duration<Number, Period> time) {
  return std::chrono::duration<double>(time).count();
}
/// Converts the seconds of a message or an event to a duration.
inline std::chrono::nanoseconds from_seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

/// Parses "250ms", "1.5s", "5m", "12h", "7d". Up to 100 years; a bare number is an error.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);
/// Writes a duration in the largest unit that divides it: "90s", "5m".
std::string duration_text(std::chrono::nanoseconds duration);

/// Parses "512KiB", "2GiB", "1.5GB", "64B". A bare number is an error.
Result<std::int64_t> parse_bytes(std::string_view text);
/// Writes a size in the largest binary unit that divides it: "1536MiB".
std::string bytes_text(std::int64_t bytes);
/// Writes a size in GiB with a number of decimals: "1.5 GiB".
std::string gib_text(std::integral auto bytes, int decimals) {
  return detail::gib_text(static_cast<double>(bytes), decimals);
}

/// Writes a size for people: "812 bytes", "64 KiB", "1.5 MiB (1572000 bytes)". Two different sizes
/// have different texts.
std::string size_text(std::uint64_t bytes);

/// Writes a number and a noun: "1 stage", "2 stages".
std::string counted(std::integral auto count, const std::string& what,
                    const std::string& plural = "s") {
  return std::to_string(count) + " " + what + (count == 1 ? "" : plural);
}

/// A unit and its size in the base unit.
struct MeasureUnit {
  std::string_view name;
  double size;
};
/// The units of a size, in bytes. The binary units come first, the largest one at the front.
std::span<const MeasureUnit> byte_units();
/// Parses a number that is not negative and its unit, with at most one blank between them. Returns
/// the number in base units; nothing if the text has another form.
std::optional<double> parse_quantity(std::string_view text, std::span<const MeasureUnit> units,
                                     std::chars_format format = std::chars_format::fixed);

/// An interval of `steps` steps or of `time`. Exactly one of the two is not zero.
struct Interval {
  std::int64_t steps = 0;
  std::chrono::nanoseconds time{};

  friend bool operator==(const Interval&, const Interval&) = default;
};

/// Parses "100 steps", "1 step", or a duration.
Result<Interval> parse_interval(std::string_view text);
std::string to_text(const Interval& interval);

/// A count from `fewest` to `most`, both included.
struct CountRange {
  int fewest = 1;
  int most = 1;

  friend bool operator==(const CountRange&, const CountRange&) = default;
};

/// Parses "1:8"; "4" means "4:4".
Result<CountRange> parse_range(std::string_view text);
std::string to_text(CountRange range);

}  // namespace troupe
