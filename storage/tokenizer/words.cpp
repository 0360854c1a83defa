#include "storage/tokenizer/words.h"

#include <array>
#include <cstdint>

#include "core/text.h"
#include "storage/tokenizer/unicode.h"

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

std::string_view first_word(std::string_view text) {
  if (const auto ending = contraction(text); !ending.empty()) return ending;
  const std::size_t start = text.front() == ' ' ? 1 : 0;
  if (start == text.size()) return text;
  const auto kind = kind_of(first_character(text.substr(start)).code);
  if (kind == CharacterKind::space) return blanks(text);
  return text.substr(0, end_of_run(text, start, kind));
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
