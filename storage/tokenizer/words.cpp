#include "storage/tokenizer/words.h"

#include <array>
#include <cstdint>

#include "core/text.h"
#include "storage/unicode/unicode.h"

namespace troupe::storage {
namespace {

/// Returns the index after a run of characters of one kind that begins at `start`.
std::size_t end_of_run(std::string_view text, std::size_t start, CharacterKind kind) {
  while (start < text.size()) {
    const auto next = first_character(text.substr(start));
    if (kind_of(next.code) != kind) break;
    start += next.bytes;
  }
  return start;
}

std::string_view contraction(std::string_view text) {
  if (text.front() != '\'') return {};
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(ending)) return text.substr(0, ending.size());
  return {};
}

/// Finds contractions in capitals too. The long s (U+017F) is a form of s.
std::string_view contraction_in_any_case(std::string_view text) {
  if (text.front() != '\'') return {};
  constexpr std::string_view long_s = "'\xc5\xbf";
  if (text.starts_with(long_s)) return text.substr(0, long_s.size());
  const auto lower = [&](std::size_t at) {
    const char c = at < text.size() ? text[at] : '\0';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char first = lower(1), second = lower(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return text.substr(0, 2);
  if (((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l'))
    return text.substr(0, 3);
  return {};
}

/// Returns a run of blanks. Leaves the last blank to a word that follows.
std::string_view blanks(std::string_view text) {
  std::size_t end = 0;
  std::size_t last = 0;
  while (end < text.size()) {
    const auto next = first_character(text.substr(end));
    if (kind_of(next.code) != CharacterKind::space) break;
    last = end;
    end += next.bytes;
  }
  return text.substr(0, end == text.size() || last == 0 ? end : last);
}

bool breaks_line(char32_t code) { return code == '\r' || code == '\n'; }

/// Returns a run of blanks as blanks() does, but a run with line breaks ends with the last of them.
std::string_view blanks_and_lines(std::string_view text) {
  const auto run = text.substr(0, end_of_run(text, 0, CharacterKind::space));
  const auto last = run.find_last_of("\r\n");
  return last == run.npos ? blanks(text) : text.substr(0, last + 1);
}

/// Returns the index after at most `most` numbers at the beginning of a text.
std::size_t end_of_numbers(std::string_view text, int most) {
  std::size_t end = 0;
  for (; most > 0 && end < text.size(); --most) {
    const auto next = first_character(text.substr(end));
    if (kind_of(next.code) != CharacterKind::number) break;
    end += next.bytes;
  }
  return end;
}

std::string_view first_word_of_gpt2(std::string_view text) {
  if (const auto ending = contraction(text); !ending.empty()) return ending;
  const std::size_t start = text.front() == ' ' ? 1 : 0;
  if (start == text.size()) return text;
  const auto kind = kind_of(first_character(text.substr(start)).code);
  if (kind == CharacterKind::space) return blanks(text);
  return text.substr(0, end_of_run(text, start, kind));
}

/// Returns the first word by the rule of Llama 3. `most_digits` is 1 for that of Qwen2.
std::string_view first_word_of_llama3(std::string_view text, int most_digits) {
  if (const auto ending = contraction_in_any_case(text); !ending.empty()) return ending;
  const auto first = first_character(text);
  const auto kind = kind_of(first.code);
  if (kind == CharacterKind::number) return text.substr(0, end_of_numbers(text, most_digits));
  // One character that is no letter belongs to the letters behind it.
  const auto letters_from =
      kind == CharacterKind::letter || breaks_line(first.code) ? 0 : first.bytes;
  const auto letters_to = end_of_run(text, letters_from, CharacterKind::letter);
  if (letters_to > letters_from) return text.substr(0, letters_to);
  const std::size_t start = text.front() == ' ' ? 1 : 0;
  if (auto end = end_of_run(text, start, CharacterKind::other); end > start) {
    while (end < text.size() && breaks_line(static_cast<unsigned char>(text[end]))) ++end;
    return text.substr(0, end);
  }
  return blanks_and_lines(text);
}

constexpr bool prints_as_itself(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

/// Bytes that do not print get the characters from 256 on, in order.
constexpr int first_stand_in = 256;
constexpr int stand_ins = 68;

constexpr std::array<char32_t, 256> make_printables() {
  std::array<char32_t, 256> table{};
  char32_t next = first_stand_in;
  for (int byte = 0; byte < 256; ++byte)
    table[static_cast<std::size_t>(byte)] =
        prints_as_itself(byte) ? static_cast<char32_t>(byte) : next++;
  return table;
}
constexpr auto printables = make_printables();

constexpr std::array<std::int16_t, first_stand_in + stand_ins> make_bytes() {
  std::array<std::int16_t, first_stand_in + stand_ins> table{};
  for (auto& byte : table) byte = -1;
  for (int byte = 0; byte < 256; ++byte)
    table[printables[static_cast<std::size_t>(byte)]] = static_cast<std::int16_t>(byte);
  return table;
}
constexpr auto bytes_of_printables = make_bytes();

}  // namespace

std::optional<WordRule> word_rule(std::string_view expression) {
  constexpr std::string_view gpt2 =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  constexpr std::string_view llama3 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
      R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
  constexpr std::string_view qwen2 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
      R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
  if (expression == gpt2) return WordRule::gpt2;
  if (expression == llama3) return WordRule::llama3;
  if (expression == qwen2) return WordRule::qwen2;
  return {};
}

std::string_view first_word(std::string_view text, WordRule rule) {
  switch (rule) {
    case WordRule::gpt2:
      return first_word_of_gpt2(text);
    case WordRule::llama3:
      return first_word_of_llama3(text, 3);
    case WordRule::qwen2:
      return first_word_of_llama3(text, 1);
  }
  return text;
}

char32_t printable(unsigned char byte) { return printables[byte]; }

std::string to_printable(std::string_view bytes) {
  std::string word;
  for (const char byte : bytes) append_utf8(word, printable(static_cast<unsigned char>(byte)));
  return word;
}

bool from_printable(std::string_view word, std::string& bytes) {
  bytes.clear();
  while (!word.empty()) {
    const auto next = first_character(word);
    if (next.code >= bytes_of_printables.size() || bytes_of_printables[next.code] < 0) return false;
    bytes += static_cast<char>(bytes_of_printables[next.code]);
    word.remove_prefix(next.bytes);
  }
  return true;
}

}  // namespace troupe::storage
