#include "apps/report/markup.h"

namespace troupe::apps {

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
