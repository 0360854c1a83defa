#include "storage/tokenizer/charsmap.h"

#include <algorithm>
#include <optional>

#include "core/text.h"
#include "storage/unicode/unicode.h"

namespace troupe::storage {
namespace {

std::optional<std::string> from_base64(std::string_view text) {
  const auto value = [](char c) -> int {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  };
  if (text.size() % 4 != 0) return {};
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (value(c) < 0) return {};
    bits = bits << 6 | static_cast<std::uint32_t>(value(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 4; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

// The fields of a unit of a double array, as in darts-clone.
bool has_leaf(std::uint32_t unit) { return unit >> 8 & 1; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7fffffffu; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000ffu; }
std::uint32_t offset_of(std::uint32_t unit) { return (unit >> 10) << ((unit & 1u << 9) >> 6); }

/// The classes of Hangul by which its letters join into a syllable.
enum class Hangul { none, lead, vowel, trail, open, closed };
Hangul hangul_of(char32_t code) {
  const auto within = [&](char32_t first, char32_t last) { return code >= first && code <= last; };
  if (within(0x1100, 0x115f) || within(0xa960, 0xa97c)) return Hangul::lead;
  if (within(0x1160, 0x11a7) || within(0xd7b0, 0xd7c6)) return Hangul::vowel;
  if (within(0x11a8, 0x11ff) || within(0xd7cb, 0xd7fb)) return Hangul::trail;
  if (within(0xac00, 0xd7a3)) return (code - 0xac00) % 28 ? Hangul::closed : Hangul::open;
  return Hangul::none;
}

bool joins(char32_t before, char32_t next) {
  const auto is_alone = [](char32_t code) {
    return code == '\r' || code == '\n' || contains(alone, code);
  };
  if (before == '\r' && next == '\n') return true;
  if (is_alone(before) || is_alone(next)) return false;
  if (contains(joined, next) || contains(joining, before)) return true;
  const auto left = hangul_of(before), right = hangul_of(next);
  if (left == Hangul::lead) return right != Hangul::none && right != Hangul::trail;
  if (left == Hangul::vowel || left == Hangul::open)
    return right == Hangul::vowel || right == Hangul::trail;
  return (left == Hangul::trail || left == Hangul::closed) && right == Hangul::trail;
}

/// The rules see a cluster of fewer bytes as a whole.
constexpr std::size_t long_cluster = 6;

/// Returns the cluster at the beginning of a text, as Unicode's annex 29 defines it, but without
/// its rules for flags, joined pictures and Indic conjuncts. Those clusters are long.
std::string_view first_cluster(std::string_view text) {
  auto last = first_character(text);
  auto end = last.bytes;
  while (end < text.size()) {
    const auto next = first_character(text.substr(end));
    if (!joins(last.code, next.code)) break;
    end += next.bytes;
    last = next;
  }
  return text.substr(0, end);
}

}  // namespace

Result<std::shared_ptr<const Charsmap>> Charsmap::read(std::string_view base64) {
  const auto bytes = from_base64(base64);
  if (!bytes || bytes->size() < 4) return Error{"is no base64 of at least 4 bytes"};
  const std::string_view all = *bytes;
  const std::size_t size = little_endian(all);
  if (size % 4 != 0 || size == 0 || size > all.size() - 4)
    return Error{"has a tree of " + std::to_string(size) + " bytes; a multiple of 4, and at most " +
                 std::to_string(all.size() - 4) + ", was wanted"};
  auto made = std::make_shared<Charsmap>();
  for (std::size_t at = 0; at < size; at += 4)
    made->units_.push_back(little_endian(all.substr(4 + at)));
  made->texts_ = all.substr(4 + size);
  if (!is_utf8(made->texts_)) return Error{"has texts that are no UTF-8"};
  for (std::size_t begin = 0; begin < made->texts_.size();) {
    const auto end = std::min(made->texts_.find('\0', begin), made->texts_.size());
    made->longest_ = std::max(made->longest_, end - begin);
    begin = end + 1;
  }
  return std::shared_ptr<const Charsmap>(std::move(made));
}

bool Charsmap::replace(std::string_view text, std::string& out) const {
  std::size_t place = offset_of(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) return false;
    place ^= byte;
    if (place >= units_.size() || label_of(units_[place]) != byte) return false;
    const auto unit = units_[place];
    place ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    // The shortest text that has a rule decides.
    if (place >= units_.size()) return false;
    const std::size_t begin = value_of(units_[place]);
    if (begin > texts_.size()) return false;
    out += std::string_view(texts_).substr(begin, texts_.find('\0', begin) - begin);
    return true;
  }
  return false;
}

std::string Charsmap::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    auto cluster = first_cluster(text);
    text.remove_prefix(cluster.size());
    if (cluster.size() < long_cluster && replace(cluster, out)) continue;
    while (!cluster.empty()) {
      const auto character = cluster.substr(0, first_character(cluster).bytes);
      if (!replace(character, out)) out += character;
      cluster.remove_prefix(character.size());
    }
  }
  return out;
}

}  // namespace troupe::storage
