#include "core/text.h"

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

/// XML 1.0 forbids most control characters, and discourages 0x7f to 0x9f.
bool is_xml_character(char32_t code) {
  return code == '\t' || code == '\n' || code == '\r' || (code >= 0x20 && code < 0x7f) ||
         (code >= 0xa0 && code < 0xfffe) || code > 0xffff;
}

}  // namespace

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {};
  char32_t code = lead & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  const bool too_long = code < (length == 2 ? 0x80u : length == 3 ? 0x800u : 0x10000u);
  if (surrogate || too_long || code > 0x10ffff) return {};
  return {code, length};
}

bool is_utf8(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  while (!text.empty()) {
    text.remove_prefix(
        static_cast<std::size_t>(std::ranges::find_if_not(text, is_ascii) - text.begin()));
    if (text.empty()) return true;
    const auto first = first_character(text);
    if (first.is_malformed()) return false;
    text.remove_prefix(first.bytes);
  }
  return true;
}

void append_utf8(std::string& out, char32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string escaped(std::string_view text, std::size_t most) {
  std::string safe;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == most) return safe + "…";
    const auto first = first_character(text);
    text.remove_prefix(first.bytes);
    switch (first.code) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        append_utf8(safe, is_xml_character(first.code) ? first.code : replacement_character);
    }
  }
  return safe;
}

namespace {

/// Returns the bytes of the first `count` characters, or of all.
std::size_t bytes_of(std::string_view text, std::size_t count) {
  std::size_t bytes = 0;
  for (; count > 0 && bytes < text.size(); --count)
    bytes += first_character(text.substr(bytes)).bytes;
  return bytes;
}

/// Appends one line, broken into several.
void append_wrapped(std::string& out, std::string_view line, std::size_t columns,
                    std::size_t indent) {
  std::size_t room = columns;
  for (;;) {
    const auto fits = bytes_of(line, room);
    if (fits == line.size()) break;
    // A space behind the last character that fits is a place to break, too.
    auto end = line.rfind(' ', fits);
    // Leading spaces are the line's own indentation.
    if (end == line.npos || line.find_first_not_of(' ') >= end) end = fits;
    out += line.substr(0, end);
    line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
    if (line.empty()) return;
    out += '\n' + std::string(indent, ' ');
    room = columns - indent;
  }
  out += line;
}

/// Returns where the last column of a line begins in the left half of `columns`; without a column,
/// a little to the right of the line.
std::size_t begin_of_last_column(std::string_view line, std::size_t columns) {
  const auto begin = std::min(line.find_first_not_of(' '), line.size());
  std::size_t last = begin + 4;
  for (auto gap = line.find("  ", begin); gap < columns / 2; gap = line.find("  ", gap)) {
    gap = line.find_first_not_of(' ', gap);
    if (gap == line.npos || gap > columns / 2) break;
    last = gap;
  }
  return std::min(last, columns / 2);
}

}  // namespace

std::string wrapped_in_columns(std::string_view text, std::size_t columns) {
  constexpr std::size_t least = 16;  // A narrower terminal is left to itself.
  if (columns < least) return std::string(text);
  std::string out;
  for (;;) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    append_wrapped(out, line, columns, begin_of_last_column(line, columns));
    if (end == text.npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::ptrdiff_t sign = number < 0 ? 1 : 0;
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > sign; at -= 3)
    text.insert(static_cast<std::size_t>(at), 1, ',');
  return text;
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent) {
  if (columns <= 2 * indent) return std::string(text);
  std::string out;
  for (;;) {
    const auto end = text.find('\n');
    append_wrapped(out, text.substr(0, end), columns, indent);
    if (end == text.npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string escaped(std::string_view text) {
  return escaped(text, std::numeric_limits<std::size_t>::max());
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> edits(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) edits[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) edits[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      edits[i][j] = std::min(
          {edits[i - 1][j] + 1, edits[i][j - 1] + 1, edits[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  return edits[a.size()][b.size()];
}

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  constexpr std::size_t longest = 64;  // No key is longer. The limit keeps the table small.
  if (word.size() > longest) return {};
  std::string_view best;
  std::size_t least = word.size() / 3 + 1;
  for (const auto candidate : candidates) {
    const auto edits = edit_distance(word, candidate);
    if (edits > least || edits >= std::max(word.size(), candidate.size())) continue;
    if (edits == least && !best.empty()) continue;
    best = candidate;
    least = edits;
  }
  return best;
}

}  // namespace troupe
