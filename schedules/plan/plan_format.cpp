#include "schedules/plan/plan_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace troupe::schedules {

namespace {

/// Prints a number with `digits` decimals, independent of the locale.
std::string fixed(double number, int digits) {
  std::array<char, 400> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 std::chars_format::fixed, digits);
  return {buffer.data(), end.ptr};
}

}  // namespace

std::string significant(double number) {
  if (number == 0 || !std::isfinite(number)) return fixed(number, 0);
  const int before_point = static_cast<int>(std::floor(std::log10(std::abs(number)))) + 1;
  return fixed(number, std::clamp(3 - before_point, 0, 12));
}

std::string show(Bytes bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  double number = static_cast<double>(bytes);
  for (; number >= 1024 && unit + 1 < units.size(); ++unit) number /= 1024;
  return (unit == 0 ? std::to_string(bytes) : significant(number)) + " " + units[unit];
}

std::string show(Seconds time) {
  const double seconds = time.count();
  if (seconds >= 1 || seconds == 0) return significant(seconds) + " s";
  if (seconds >= 1e-3) return significant(seconds * 1e3) + " ms";
  return significant(seconds * 1e6) + " us";
}

std::string percent(double part) { return fixed(100 * part, 1) + " %"; }

std::string TextTable::text() const {
  const std::size_t columns = rows_.front().size();
  std::vector<std::size_t> widths(columns, 0);
  std::vector<bool> are_numbers(columns, false);
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < columns; ++c) {
      widths[c] = std::max(widths[c], row[c].size());
      if (!row[c].empty() && row[c][0] >= '0' && row[c][0] <= '9') are_numbers[c] = true;
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < columns; ++c) {
      const std::string space(widths[c] - row[c].size(), ' ');
      line += (c == 0 ? "" : "  ") + (are_numbers[c] ? space + row[c] : row[c] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace troupe::schedules
