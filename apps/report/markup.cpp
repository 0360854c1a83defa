#include "apps/report/markup.h"

#include <cstdint>
#include <limits>

namespace troupe::apps {
namespace {

constexpr std::uint32_t replacement = 0xfffd;

bool is_xml_character(std::uint32_t letter) {
  return letter == '\t' || letter == '\n' || letter == '\r' || (letter >= 0x20 && letter < 0x7f) ||
         (letter >= 0xa0 && letter < 0xd800) || (letter > 0xdfff && letter < 0xfffe) ||
         (letter > 0xffff && letter < 0x110000);
}

/// Removes and returns the first character. An invalid byte counts as one broken character.
std::uint32_t take_character(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80             ? 1
                             : (first & 0xe0) == 0xc0 ? 2
                             : (first & 0xf0) == 0xe0 ? 3
                             : (first & 0xf8) == 0xf0 ? 4
                                                      : 0;
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  std::uint32_t letter = length == 1 ? first : first & (0x7fu >> length);
  bool is_whole = length > 0 && length <= text.size();
  for (std::size_t i = 1; is_whole && i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    is_whole = (next & 0xc0) == 0x80;
    letter = letter << 6 | (next & 0x3f);
  }
  if (!is_whole || letter < least[length]) {
    text.remove_prefix(1);
    return replacement;
  }
  text.remove_prefix(length);
  return is_xml_character(letter) ? letter : replacement;
}

void append_character(std::string& text, std::uint32_t letter) {
  if (letter < 0x80) {
    text += static_cast<char>(letter);
    return;
  }
  const int more = letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
  text += static_cast<char>((0xff00 >> (more + 1) & 0xff) | letter >> 6 * more);
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (letter >> 6 * i & 0x3f));
}

}  // namespace

std::string escaped(std::string_view text, std::size_t most) {
  std::string safe;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == most) return safe + "…";
    const std::uint32_t letter = take_character(text);
    switch (letter) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        append_character(safe, letter);
    }
  }
  return safe;
}

std::string escaped(std::string_view text) {
  return escaped(text, std::numeric_limits<std::size_t>::max());
}

std::string data_address(std::string_view svg) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string address = "data:image/svg+xml,";
  for (const char letter : svg) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_plain = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                          (byte >= 'A' && byte <= 'Z') || letter == ' ' || letter == '=' ||
                          letter == '/' || letter == ':' || letter == '.' || letter == ',' ||
                          letter == '-';
    if (is_plain)
      address += letter;
    else
      (address += '%') += std::string{digits[byte >> 4], digits[byte & 15]};
  }
  return address;
}

}  // namespace troupe::apps
