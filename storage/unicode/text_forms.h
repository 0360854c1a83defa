#pragma once

#include <string>
#include <string_view>

namespace troupe::storage {

// Each returns a changed text. Bytes that are no UTF-8 stay as they are.

/// Returns the canonical decomposition of a text (Unicode's NFD).
std::string decomposed(std::string_view text);
/// Returns the canonical composition of a text (Unicode's NFC).
std::string composed(std::string_view text);
std::string in_lowercase(std::string_view text);
/// Removes marks that take no space of their own.
std::string without_accents(std::string_view text);
/// Removes white space at the ends.
std::string without_space(std::string_view text, bool on_the_left, bool on_the_right);
/// Removes control characters, and makes a blank of each character of white space.
std::string without_controls(std::string_view text);
/// Puts a blank before and behind each Chinese character.
std::string with_chinese_apart(std::string_view text);
/// Replaces each occurrence of `pattern`, which is not empty.
std::string with_replaced(std::string_view text, std::string_view pattern,
                          std::string_view content);

}  // namespace troupe::storage
