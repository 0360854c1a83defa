#include "core/printable.h"

#include "core/text.h"

namespace troupe {
namespace {

bool is_space(char32_t c) { return c == '\n' || c == '\r' || c == '\t'; }

bool misleads(char32_t c) {
  const auto between = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  return c < 0x20 || between(0x7f, 0x9f) || between(0x200e, 0x200f) || between(0x2028, 0x202e) ||
         between(0x2066, 0x2069) || c == 0x061c || c == 0xfeff;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const auto first = first_character(text);
    if (is_space(first.code))
      shown += ' ';
    else if (first.is_malformed() || misleads(first.code))
      shown += '?';
    else
      shown += text.substr(0, first.bytes);
    text.remove_prefix(first.bytes);
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
