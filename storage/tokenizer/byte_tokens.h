#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe::storage {

// Byte fallback: a character without a token is written as the tokens of its bytes, such as
// "<0xE4>".

std::string token_of_byte(unsigned char byte);
/// Returns the byte that a token stands for, if it does.
std::optional<unsigned char> byte_of_token(std::string_view token);

}  // namespace troupe::storage
