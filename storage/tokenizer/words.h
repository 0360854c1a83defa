#pragma once

#include <string>
#include <string_view>

namespace troupe::storage {

/// The first word of a text that is not empty, as GPT-2 splits texts before it merges bytes:
///
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///
/// The words of a text, one after the other, are the text.
std::string_view first_word(std::string_view text);

/// The printable character that files write for a byte, and back: GPT-2's table. A word with a
/// character that stands for no byte has no bytes.
char32_t printable(unsigned char byte);
std::string to_printable(std::string_view bytes);
bool from_printable(std::string_view word, std::string& bytes);

}  // namespace troupe::storage
