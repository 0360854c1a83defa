#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace troupe::storage {

/// The first character of a text.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
};

/// Decodes UTF-8. A byte that begins no well-formed character becomes the character U+FFFD. The
/// text must not be empty.
Character first_character(std::string_view text);

void append_utf8(std::string& out, char32_t code);

/// The kinds of characters that split words: general categories L and N, White_Space, and the rest.
enum class CharacterKind { letter, number, space, other };
CharacterKind kind_of(char32_t code);

/// A range of code points, both ends included.
struct CodePoints {
  char32_t first, last;
};
/// In ascending order.
extern const std::span<const CodePoints> letters;
extern const std::span<const CodePoints> numbers;

}  // namespace troupe::storage
