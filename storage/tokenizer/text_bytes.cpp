#include "storage/tokenizer/text_bytes.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace troupe::storage {
namespace {

const AddedToken* added_token(const Tokenizer& tokenizer, std::int32_t token) {
  const auto found = std::ranges::find(tokenizer.added(), token, &AddedToken::id);
  return found == tokenizer.added().end() ? nullptr : &*found;
}

bool is_special(const Tokenizer& tokenizer, std::int32_t token) {
  const auto* added = added_token(tokenizer, token);
  return added && added->is_special;
}

/// Returns the characters of a text in UTF-8.
std::int64_t characters(const std::string& text) {
  return std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; });
}

}  // namespace

Result<std::int64_t> text_bytes(const Tokenizer& tokenizer, std::int32_t before,
                                std::span<const std::int32_t> tokens) {
  std::vector<std::int32_t> text;
  if (!is_special(tokenizer, before)) text.push_back(before);
  const auto begin = text.size();
  std::ranges::copy_if(tokens, std::back_inserter(text),
                       [&](std::int32_t token) { return !is_special(tokenizer, token); });
  const auto all = tokenizer.decode(text);
  if (!all) return all.error();
  if (tokenizer.kind() != "byte-level BPE") {
    const auto first = tokenizer.decode(std::span(text).first(begin));
    if (!first) return first.error();
    return static_cast<std::int64_t>(all->size()) - static_cast<std::int64_t>(first->size());
  }
  // Files spell each byte of these tokens as a character. Their text would not do: it has
  // replacements for characters that are cut.
  std::int64_t bytes = 0;
  for (const auto token : std::span(text).subspan(begin)) {
    const auto* added = added_token(tokenizer, token);
    bytes +=
        added ? static_cast<std::int64_t>(added->text.size()) : characters(tokenizer.token(token));
  }
  return bytes;
}

}  // namespace troupe::storage
