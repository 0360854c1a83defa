#include "core/printable.h"

#include <cstddef>
#include <cstdint>

namespace troupe {
namespace {

struct CodePoint {
  std::uint32_t number = 0;
  std::size_t bytes = 0;  // 0: not UTF-8.
};

CodePoint read(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  std::uint32_t number = first & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    number = number << 6 | (byte(i) & 0x3fU);
  }
  // Reject surrogates, overlong forms, and numbers beyond the last plane.
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (number < least[bytes] || number > 0x10ffff || (number >= 0xd800 && number <= 0xdfff))
    return {};
  return {number, bytes};
}

bool is_space(std::uint32_t c) { return c == '\n' || c == '\r' || c == '\t'; }

bool misleads(std::uint32_t c) {
  const auto between = [c](std::uint32_t first, std::uint32_t last) {
    return c >= first && c <= last;
  };
  return c < 0x20 || between(0x7f, 0x9f) || between(0x200e, 0x200f) || between(0x2028, 0x202e) ||
         between(0x2066, 0x2069) || c == 0x061c || c == 0xfeff;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const auto [number, bytes] = read(text);
    if (bytes == 0 || (misleads(number) && !is_space(number)))
      shown += '?';
    else if (is_space(number))
      shown += ' ';
    else
      shown += text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return shown;
}

void make_printable(Value& value) {
  if (const auto* text = value.text()) value = Value(printable(*text));
  if (auto* list = value.list())
    for (auto& item : *list) make_printable(item);
  if (auto* map = value.map())
    for (auto& entry : *map) {
      entry.key = printable(entry.key);
      make_printable(entry.value);
    }
}

}  // namespace troupe
