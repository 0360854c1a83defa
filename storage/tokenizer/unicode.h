#pragma once

#include <span>

namespace troupe::storage {

/// What tells words apart: the general categories L and N, the property White_Space, and the rest.
enum class CharacterKind { letter, number, space, other };
CharacterKind kind_of(char32_t code);

/// From first to last, both included.
struct CodePoints {
  char32_t first, last;
};
/// In rising order.
extern const std::span<const CodePoints> letters;
extern const std::span<const CodePoints> numbers;

}  // namespace troupe::storage
