#include "storage/tokenizer/text_stream.h"

#include <algorithm>

#include "core/text.h"

namespace troupe::storage {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

/// Returns the size of what more bytes could make a character of, at the end of a text.
std::size_t incomplete_end(std::string_view text) {
  // A decoder may have replaced bytes that are no character yet.
  std::size_t replaced = 0;
  while (text.substr(0, text.size() - replaced).ends_with(replacement))
    replaced += replacement.size();
  if (replaced > 0) return replaced;
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    const std::size_t width = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return width > back ? back : 0;
  }
  return 0;
}

/// Returns what a longer text has behind the shorter one. Another token may have changed the
/// characters before it, such as bytes that turned out to be no character.
std::string text_after(std::string_view before, std::string_view whole) {
  if (whole.starts_with(before)) return std::string(whole.substr(before.size()));
  while (!before.empty() && !whole.empty()) {
    before.remove_prefix(first_character(before).bytes);
    whole.remove_prefix(first_character(whole).bytes);
  }
  return std::string(whole);
}

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, std::span<const std::int32_t> before)
    : tokenizer_(tokenizer) {
  for (const auto token : before)
    if (tokenizer_.decode({&token, 1})) tokens_.push_back(token);
  given_ = tokens_.size();
}

std::string TextStream::text_behind(bool takes_incomplete) {
  const auto before = tokenizer_.decode(std::span(tokens_).first(given_));
  const auto whole = tokenizer_.decode(tokens_);
  if (!before || !whole) return "";
  auto text = text_after(*before, *whole);
  auto held = incomplete_end(text);
  // No character has more than four bytes: what is replaced after four tokens stays so.
  constexpr int most_held = 4;
  held_ = text.ends_with(replacement) ? held_ + 1 : 0;
  if (takes_incomplete || held_ >= most_held) {
    held = 0;
    held_ = 0;
  }
  const auto from = std::min(given_bytes_, text.size() - held);
  const auto next = text.substr(from, text.size() - held - from);
  if (held > 0 || text.empty()) {
    given_bytes_ = std::max(given_bytes_, from + next.size());
    return next;
  }
  // The tokens given last stay: how the next one is written may depend on them.
  tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(given_));
  given_ = tokens_.size();
  given_bytes_ = 0;
  return next;
}

std::string TextStream::next(std::int32_t token) {
  if (!tokenizer_.decode({&token, 1})) return rest() + "<" + std::to_string(token) + ">";
  tokens_.push_back(token);
  return text_behind(false);
}

std::string TextStream::rest() { return text_behind(true); }

}  // namespace troupe::storage
