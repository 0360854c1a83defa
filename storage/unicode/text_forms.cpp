#include "storage/unicode/text_forms.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/text.h"
#include "storage/unicode/unicode.h"

namespace troupe::storage {
namespace {

/// Calls change(character, bytes, out) for each character, and returns `out`.
template <class Change>
std::string changed(std::string_view text, const Change& change) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const auto next = first_character(text);
    change(next, text.substr(0, next.bytes), out);
    text.remove_prefix(next.bytes);
  }
  return out;
}

template <class Row>
const Row* row_of(std::span<const Row> rows, char32_t code) {
  const auto at = std::upper_bound(rows.begin(), rows.end(), code,
                                   [](char32_t c, const Row& row) { return c < row.first; });
  return at != rows.begin() && code <= std::prev(at)->last ? &*std::prev(at) : nullptr;
}

int class_of(char32_t code) {
  const auto* row = code < 0x300 ? nullptr : row_of(combining, code);
  return row ? row->number : 0;
}

const Decomposition* decomposition_of(char32_t code) {
  if (code < 0xc0) return nullptr;
  const auto at =
      std::lower_bound(decompositions.begin(), decompositions.end(), code,
                       [](const Decomposition& row, char32_t c) { return row.code < c; });
  return at != decompositions.end() && at->code == code ? &*at : nullptr;
}

// Syllables of Hangul are computed: chapter 3.12 of the Unicode standard.
constexpr char32_t syllable_base = 0xac00, lead_base = 0x1100, vowel_base = 0x1161,
                   trail_base = 0x11a7;
constexpr char32_t leads = 19, vowels = 21, trails = 28, syllables = leads * vowels * trails;

/// A character, or a byte that is none, in which case the class is 0.
struct Unit {
  char32_t code;
  int number;
  bool is_byte;
};

/// Appends the parts of a character. A part has parts in turn.
void append_parts(char32_t code, std::vector<Unit>& out) {
  if (code >= syllable_base && code < syllable_base + syllables) {
    const auto index = code - syllable_base;
    out.push_back({lead_base + index / (vowels * trails), 0, false});
    out.push_back({vowel_base + index % (vowels * trails) / trails, 0, false});
    if (index % trails) out.push_back({trail_base + index % trails, 0, false});
    return;
  }
  const auto* row = decomposition_of(code);
  if (!row) return out.push_back({code, class_of(code), false});
  append_parts(row->first, out);
  if (row->second) append_parts(row->second, out);
}

/// Returns the parts of a text. Marks behind a character are sorted by their class.
std::vector<Unit> parts_of(std::string_view text) {
  std::vector<Unit> units;
  units.reserve(text.size());
  std::size_t marks = 0;  // The index of the first of the marks at the end.
  const auto sort = [&] {
    std::stable_sort(units.begin() + static_cast<std::ptrdiff_t>(marks), units.end(),
                     [](const Unit& a, const Unit& b) { return a.number < b.number; });
  };
  while (!text.empty()) {
    const auto next = first_character(text);
    const auto before = units.size();
    if (next.is_malformed())
      units.push_back({static_cast<unsigned char>(text.front()), 0, true});
    else
      append_parts(next.code, units);
    text.remove_prefix(next.bytes);
    for (auto i = before; i < units.size(); ++i) {
      if (units[i].number != 0) continue;
      std::stable_sort(units.begin() + static_cast<std::ptrdiff_t>(marks),
                       units.begin() + static_cast<std::ptrdiff_t>(i),
                       [](const Unit& a, const Unit& b) { return a.number < b.number; });
      marks = i + 1;
    }
  }
  sort();
  return units;
}

std::string written(const std::vector<Unit>& units) {
  std::string text;
  text.reserve(units.size());
  for (const auto& unit : units)
    if (unit.is_byte)
      text += static_cast<char>(unit.code);
    else
      append_utf8(text, unit.code);
  return text;
}

std::uint64_t pair_of(char32_t first, char32_t second) {
  return (std::uint64_t{first} << 32) | second;
}

std::unordered_map<std::uint64_t, char32_t> make_compositions() {
  std::unordered_map<std::uint64_t, char32_t> made;
  for (const auto& row : decompositions)
    if (row.is_composed && row.second) made.emplace(pair_of(row.first, row.second), row.code);
  return made;
}

/// Returns the character that two make together, or 0.
char32_t composition(char32_t first, char32_t second) {
  if (first >= lead_base && first < lead_base + leads && second >= vowel_base &&
      second < vowel_base + vowels)
    return syllable_base + ((first - lead_base) * vowels + (second - vowel_base)) * trails;
  if (first >= syllable_base && first < syllable_base + syllables &&
      (first - syllable_base) % trails == 0 && second > trail_base && second < trail_base + trails)
    return first + (second - trail_base);
  static const auto compositions = make_compositions();
  const auto at = compositions.find(pair_of(first, second));
  return at == compositions.end() ? 0 : at->second;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_chinese(char32_t code) {
  constexpr CodePoints chinese[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                    {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
                                    {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
  return contains(chinese, code);
}

}  // namespace

std::string decomposed(std::string_view text) {
  return is_ascii(text) ? std::string(text) : written(parts_of(text));
}

std::string composed(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  auto units = parts_of(text);
  constexpr auto none = static_cast<std::size_t>(-1);
  std::size_t starter = none, size = 0;
  int last = 0;  // The class of the unit before, if it stands between the starter and this unit.
  for (const auto& unit : units) {
    const bool is_next = starter != none && size == starter + 1;
    const bool is_free = is_next || (last != 0 && last < unit.number);
    const char32_t whole = starter != none && is_free && !unit.is_byte && !units[starter].is_byte
                               ? composition(units[starter].code, unit.code)
                               : 0;
    if (whole) {
      units[starter].code = whole;
      continue;
    }
    if (unit.number == 0) starter = size;
    last = unit.number;
    units[size++] = unit;
  }
  units.resize(size);
  return written(units);
}

std::string in_lowercase(std::string_view text) {
  return changed(text, [](const Character& next, std::string_view bytes, std::string& out) {
    if (next.code < 0x80) {
      const char c = bytes.front();
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      return;
    }
    constexpr char32_t dotted_i = 0x130, dot_above = 0x307;  // The only one that becomes two.
    if (next.code == dotted_i) {
      out += 'i';
      return append_utf8(out, dot_above);
    }
    const auto* row = row_of(capitals, next.code);
    if (!row || (next.code - row->first) % static_cast<char32_t>(row->step) != 0) {
      out += bytes;
      return;
    }
    append_utf8(out, static_cast<char32_t>(static_cast<std::int64_t>(next.code) + row->distance));
  });
}

std::string without_accents(std::string_view text) {
  return changed(text, [](const Character& next, std::string_view bytes, std::string& out) {
    if (next.code < 0x80 || !contains(accents, next.code)) out += bytes;
  });
}

std::string without_space(std::string_view text, bool on_the_left, bool on_the_right) {
  const auto is_space = [](char32_t code) { return kind_of(code) == CharacterKind::space; };
  while (on_the_left && !text.empty()) {
    const auto next = first_character(text);
    if (!is_space(next.code)) break;
    text.remove_prefix(next.bytes);
  }
  std::size_t end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto next = first_character(text.substr(at));
    at += next.bytes;
    if (!on_the_right || !is_space(next.code)) end = at;
  }
  return std::string(text.substr(0, end));
}

std::string without_controls(std::string_view text) {
  return changed(text, [](const Character& next, std::string_view bytes, std::string& out) {
    if (next.is_malformed() || contains(controls, next.code)) return;
    if (kind_of(next.code) == CharacterKind::space)
      out += ' ';
    else
      out += bytes;
  });
}

std::string with_chinese_apart(std::string_view text) {
  return changed(text, [](const Character& next, std::string_view bytes, std::string& out) {
    const bool is_apart = is_chinese(next.code);
    if (is_apart) out += ' ';
    out += bytes;
    if (is_apart) out += ' ';
  });
}

std::string with_replaced(std::string_view text, std::string_view pattern,
                          std::string_view content) {
  std::string out;
  out.reserve(text.size());
  for (auto at = text.find(pattern); at != text.npos; at = text.find(pattern)) {
    out += text.substr(0, at);
    out += content;
    text.remove_prefix(at + pattern.size());
  }
  out += text;
  return out;
}

}  // namespace troupe::storage
