#include "storage/tokenizer/unicode.h"

#include <algorithm>

namespace troupe::storage {
namespace {

constexpr char32_t replacement = 0xfffd;

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

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {replacement, 1};
  char32_t code = lead & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {replacement, 1};
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  const bool too_long = code < (length == 2 ? 0x80u : length == 3 ? 0x800u : 0x10000u);
  if (surrogate || too_long || code > 0x10ffff) return {replacement, 1};
  return {code, length};
}

void append_utf8(std::string& out, char32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

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
