#include "schedules/plan/plan_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/byte_text.h"

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

std::string show(Bytes bytes) { return byte_text(bytes); }

std::string show(Seconds time) {
  const double seconds = time.count();
  if (seconds >= 1 || seconds == 0) return significant(seconds) + " s";
  if (seconds >= 1e-3) return significant(seconds * 1e3) + " ms";
  return significant(seconds * 1e6) + " us";
}

std::string percent(double part) { return fixed(100 * part, 1) + " %"; }

std::string TextTable::text(std::size_t columns) const {
  const std::size_t count = rows_.front().size();
  std::vector<std::size_t> widths(count, 0);
  std::vector<bool> are_numbers(count, false);
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < count; ++c) {
      widths[c] = std::max(widths[c], row[c].size());
      if (!row[c].empty() && row[c][0] >= '0' && row[c][0] <= '9') are_numbers[c] = true;
    }
  }
  const auto cell = [&](const std::vector<std::string>& row, std::size_t c) {
    const std::string space(widths[c] - row[c].size(), ' ');
    return are_numbers[c] ? space + row[c] : row[c] + space;
  };
  std::string text;
  for (std::size_t begin = 1; begin == 1 || begin < count;) {
    std::size_t end = begin, width = widths[0];
    while (end < count && (end == begin || width + 2 + widths[end] <= columns))
      width += 2 + widths[end++];
    if (begin > 1) text += '\n';
    for (const auto& row : rows_) {
      std::string line = cell(row, 0);
      for (std::size_t c = begin; c < end; ++c) line += "  " + cell(row, c);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    begin = std::max(end, begin + 1);
  }
  return text;
}

}  // namespace troupe::schedules
