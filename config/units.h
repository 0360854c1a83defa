#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace troupe::config {

/// "250ms", "1.5s", "5m", "12h", "7d". Up to 100 years; a bare number is an error.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);
/// In the largest unit that divides it: "90s", "5m".
std::string to_text(std::chrono::nanoseconds duration);

/// "512KiB", "2GiB", "1.5GB", "64B". A bare number is an error.
Result<std::int64_t> parse_bytes(std::string_view text);
/// In the largest binary unit that divides it: "1536MiB".
std::string bytes_text(std::int64_t bytes);

/// How often something happens: after so many steps, or so much time. One of the two is not zero.
struct Interval {
  std::int64_t steps = 0;
  std::chrono::nanoseconds time{};

  friend bool operator==(const Interval&, const Interval&) = default;
};

/// "100 steps", "1 step", or a duration.
Result<Interval> parse_interval(std::string_view text);
std::string to_text(const Interval& interval);

/// From the fewest to the most, both included.
struct CountRange {
  int fewest = 1;
  int most = 1;

  friend bool operator==(const CountRange&, const CountRange&) = default;
};

/// "1:8"; "4" is "4:4".
Result<CountRange> parse_range(std::string_view text);
std::string to_text(CountRange range);

}  // namespace troupe::config
