#pragma once

#include <cstdint>
#include <span>

namespace troupe::storage {

// The tables are those of the library `tokenizers`, which has an own version of Unicode for each
// task. They are compiled in, so that a text has the same tokens on every machine.

/// The kinds of characters that split words: general categories L and N, White_Space, and the rest.
enum class CharacterKind : std::uint8_t { letter, number, space, other };
CharacterKind kind_of(char32_t code);

/// A range of code points, both ends included.
struct CodePoints {
  char32_t first, last;
};
// All ranges are in ascending order.
extern const std::span<const CodePoints> letters;      // \p{L}
extern const std::span<const CodePoints> numbers;      // \p{N}
extern const std::span<const CodePoints> digits;       // The splitter Digits finds them.
extern const std::span<const CodePoints> of_words;     // \w, for added tokens with single_word.
extern const std::span<const CodePoints> punctuation;  // BertPreTokenizer splits at them.
extern const std::span<const CodePoints> controls;     // BertNormalizer removes them.
extern const std::span<const CodePoints> accents;  // BertNormalizer and StripAccents remove them.
// The kinds of characters that form clusters, which a reader takes for one character.
extern const std::span<const CodePoints> joined;   // To the character before them.
extern const std::span<const CodePoints> joining;  // The character behind them.
extern const std::span<const CodePoints> alone;    // Control characters, which form none.

bool contains(std::span<const CodePoints> ranges, char32_t code);

/// Capital letters from `first` to `last`, each `step` after the one before. Each lowercase letter
/// has the same distance from its capital letter.
struct Capitals {
  char32_t first, last;
  int step;
  std::int32_t distance;
};
extern const std::span<const Capitals> capitals;

/// The canonical decomposition of a character. `second` is 0 if there is one part. Without
/// `is_composed` NFC leaves the parts as they are.
struct Decomposition {
  char32_t code, first, second;
  bool is_composed;
};
extern const std::span<const Decomposition> decompositions;

/// Marks of one canonical combining class, by which normal forms sort them.
struct Combining {
  char32_t first, last;
  std::uint8_t number;
};
extern const std::span<const Combining> combining;

}  // namespace troupe::storage
