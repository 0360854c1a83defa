#include "core/byte_text.h"

#include <array>
#include <charconv>
#include <cstddef>

namespace troupe {

std::string byte_text(std::int64_t bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  double number = static_cast<double>(bytes);
  for (; number >= 1024 && unit + 1 < units.size(); ++unit) number /= 1024;
  if (unit == 0) return std::to_string(bytes) + " B";
  // Independent of the locale.
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed,
                    number < 10    ? 2
                    : number < 100 ? 1
                                   : 0);
  return std::string(text.data(), end.ptr) + " " + units[unit];
}

}  // namespace troupe
