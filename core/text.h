#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

// UTF-8.

/// U+FFFD, which replaces bytes that cannot be decoded.
constexpr char32_t replacement_character = 0xfffd;

/// The first character of a text.
struct Character {
  char32_t code = replacement_character;
  std::size_t bytes = 1;

  /// Returns whether the byte begins no well-formed character. U+FFFD itself has three bytes.
  bool is_malformed() const { return code == replacement_character && bytes == 1; }
};

/// Decodes the first character of a text, which must not be empty. A byte that begins no
/// well-formed character counts as a malformed character of its own. Surrogates, forms that are
/// longer than necessary, and numbers above 0x10ffff are malformed.
Character first_character(std::string_view text);

/// Returns whether all characters are well-formed.
bool is_utf8(std::string_view text);

/// Appends a character in UTF-8.
void append_utf8(std::string& out, char32_t code);

// XML and HTML.

/// Escapes a text for HTML and XML, between tags and in quoted attributes alike. Malformed UTF-8
/// and characters that XML forbids become replacement characters.
std::string escaped(std::string_view text);

/// Escapes the first `most` characters of a text, and adds an ellipsis if the text is longer.
std::string escaped(std::string_view text, std::size_t most);

/// Returns a whole number with commas: "31,887".
std::string grouped(std::int64_t number);

/// Breaks the lines of a text between words, so that each has at most `columns` characters. What
/// continues a line is indented. A word that fits no line is broken.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent = 4);

/// Breaks the lines of a list in the same way. What continues a line stands below its last column,
/// which begins behind two spaces or more.
std::string wrapped_in_columns(std::string_view text, std::size_t columns);

/// Counts the edits between two words. An edit inserts, removes or replaces a letter, or swaps two
/// neighbours. The table has |a| x |b| cells: callers limit the length of user input.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the candidate that a user probably meant by `word`; empty if none is similar.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace troupe
