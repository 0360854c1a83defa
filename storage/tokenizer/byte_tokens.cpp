#include "storage/tokenizer/byte_tokens.h"

#include <charconv>
#include <cstdio>

namespace troupe::storage {

std::string token_of_byte(unsigned char byte) {
  char text[8];
  std::snprintf(text, sizeof text, "<0x%02X>", static_cast<unsigned>(byte));
  return text;
}

std::optional<unsigned char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return {};
  unsigned byte = 0;
  const auto* end = token.data() + 5;
  const auto read = std::from_chars(token.data() + 3, end, byte, 16);
  if (read.ec != std::errc() || read.ptr != end) return {};
  return static_cast<unsigned char>(byte);
}

}  // namespace troupe::storage
