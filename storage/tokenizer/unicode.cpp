#include "storage/tokenizer/unicode.h"

#include <algorithm>

namespace troupe::storage {
namespace {

bool contains(std::span<const CodePoints> ranges, char32_t code) {
  const auto at =
      std::upper_bound(ranges.begin(), ranges.end(), code,
                       [](char32_t c, const CodePoints& range) { return c < range.first; });
  return at != ranges.begin() && code <= std::prev(at)->last;
}

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

}  // namespace

CharacterKind kind_of(char32_t code) {
  if (code < 0x80) {
    if ((code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z')) return CharacterKind::letter;
    if (code >= '0' && code <= '9') return CharacterKind::number;
    return is_space(code) ? CharacterKind::space : CharacterKind::other;
  }
  if (is_space(code)) return CharacterKind::space;
  if (contains(letters, code)) return CharacterKind::letter;
  return contains(numbers, code) ? CharacterKind::number : CharacterKind::other;
}

}  // namespace troupe::storage
