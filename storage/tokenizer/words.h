#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe::storage {

/// The rules for splitting a text before BPE. The words of a text, concatenated, are the text.
///
///   gpt2    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///   llama3  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
///            ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
///   qwen2   llama3, but with \p{N}: a number is a word of one digit
enum class WordRule { gpt2, llama3, qwen2 };

/// Returns the rule that a regular expression of a tokenizer.json stands for, if it is known.
std::optional<WordRule> word_rule(std::string_view expression);

/// Returns the first word of a text that is not empty.
std::string_view first_word(std::string_view text, WordRule rule = WordRule::gpt2);

/// Converts bytes to the printable characters that files use for them (GPT-2's table), and back.
/// from_printable() returns false if a character stands for no byte.
char32_t printable(unsigned char byte);
std::string to_printable(std::string_view bytes);
bool from_printable(std::string_view word, std::string& bytes);

}  // namespace troupe::storage
