#include "storage/unicode/unicode.h"

#include <algorithm>
#include <vector>

namespace troupe::storage {
namespace {

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

CharacterKind look_up(char32_t code) {
  if (is_space(code)) return CharacterKind::space;
  if (contains(letters, code)) return CharacterKind::letter;
  return contains(numbers, code) ? CharacterKind::number : CharacterKind::other;
}

/// The characters that nearly all texts consist of: those of the Basic Multilingual Plane.
constexpr std::size_t frequent = 0x10000;

std::vector<CharacterKind> kinds_of_frequent() {
  std::vector<CharacterKind> kinds(frequent);
  for (char32_t code = 0; code < frequent; ++code) kinds[code] = look_up(code);
  return kinds;
}

}  // namespace

bool contains(std::span<const CodePoints> ranges, char32_t code) {
  const auto at =
      std::upper_bound(ranges.begin(), ranges.end(), code,
                       [](char32_t c, const CodePoints& range) { return c < range.first; });
  return at != ranges.begin() && code <= std::prev(at)->last;
}

CharacterKind kind_of(char32_t code) {
  static const auto kinds = kinds_of_frequent();
  return code < frequent ? kinds[code] : look_up(code);
}

}  // namespace troupe::storage
