#pragma once

#include <string>
#include <string_view>

namespace troupe::storage {

/// Returns the first word of a text that is not empty, by GPT-2's rule for splitting before BPE:
///
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///
/// The words of a text, concatenated, are the text.
std::string_view first_word(std::string_view text);

/// Converts bytes to the printable characters that files use for them (GPT-2's table), and back.
/// from_printable() returns false if a character stands for no byte.
char32_t printable(unsigned char byte);
std::string to_printable(std::string_view bytes);
bool from_printable(std::string_view word, std::string& bytes);

}  // namespace troupe::storage
