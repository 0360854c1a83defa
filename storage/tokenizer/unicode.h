#pragma once

#include <span>

namespace troupe::storage {

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
