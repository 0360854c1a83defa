#include "storage/tokenizer/added_tokens.h"

#include <algorithm>

#include "core/text.h"
#include "storage/tokenizer/fields.h"
#include "storage/unicode/unicode.h"

namespace troupe::storage {
namespace {

constexpr std::int64_t most_added_id = (std::int64_t{1} << 24) - 1;
constexpr std::size_t longest_added = 1'024;

/// Returns the last character of a text that is not empty.
Character last_character(std::string_view text) {
  constexpr std::size_t widest = 4;
  for (std::size_t width = std::min(widest, text.size()); width > 1; --width)
    if (const auto last = first_character(text.substr(text.size() - width)); last.bytes == width)
      return last;
  return first_character(text.substr(text.size() - 1));
}

bool is_of_word(const Character& c) { return contains(of_words, c.code); }

std::size_t space_at_end(std::string_view text) {
  const auto whole = text.size();
  while (!text.empty()) {
    const auto last = last_character(text);
    if (kind_of(last.code) != CharacterKind::space) break;
    text.remove_suffix(last.bytes);
  }
  return whole - text.size();
}

std::size_t space_at_begin(std::string_view text) {
  const auto whole = text.size();
  while (!text.empty()) {
    const auto next = first_character(text);
    if (kind_of(next.code) != CharacterKind::space) break;
    text.remove_prefix(next.bytes);
  }
  return whole - text.size();
}

}  // namespace

Result<std::vector<AddedToken>> read_added_tokens(const Value* value, const std::string& place) {
  std::vector<AddedToken> tokens;
  if (!value) return tokens;
  if (!value->list()) return Error{place + ": is no list of added tokens"};
  for (const auto& entry : *value->list()) {
    Fields fields(entry, place + "[" + std::to_string(tokens.size()) + "]");
    AddedToken token;
    token.text = fields.text("content");
    token.id = static_cast<std::int32_t>(fields.integer("id", 0, most_added_id));
    token.is_single_word = fields.boolean("single_word", false);
    token.takes_left = fields.boolean("lstrip", false);
    token.takes_right = fields.boolean("rstrip", false);
    token.is_special = fields.boolean("special", false);
    token.is_normalized = fields.boolean("normalized", !token.is_special);
    if (token.text.empty() || token.text.size() > longest_added)
      fields.fail("content",
                  "has " + std::to_string(token.text.size()) + " bytes; 1 to 1024 were wanted");
    if (auto status = fields.finish(); !status) return status.error();
    tokens.push_back(std::move(token));
  }
  return tokens;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const std::vector<std::string>& patterns)
    : tokens_(std::move(tokens)) {
  std::vector<std::pair<std::string, std::int32_t>> words;
  for (std::size_t i = 0; i < patterns.size(); ++i)
    words.emplace_back(patterns[i], static_cast<std::int32_t>(i));
  // If two tokens have the same pattern, the first one is found.
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end(),
                          [](const auto& a, const auto& b) { return a.first == b.first; }),
              words.end());
  trie_ = Trie(std::move(words));
}

void AddedTokens::split(std::string_view text, const TakePiece& take_text,
                        const std::function<void(std::int32_t)>& take_token) const {
  std::size_t done = 0;  // Up to here the text was given.
  for (std::size_t at = 0; at < text.size();) {
    const auto match = trie_.longest(text.substr(at));
    if (match.bytes == 0) {
      ++at;
      continue;
    }
    const auto& token = tokens_[static_cast<std::size_t>(match.value)];
    auto begin = at, end = at + match.bytes;
    at = end;
    const auto before = text.substr(0, begin), behind = text.substr(end);
    if (token.is_single_word && ((!before.empty() && is_of_word(last_character(before))) ||
                                 (!behind.empty() && is_of_word(first_character(behind)))))
      continue;
    if (token.takes_left && begin > done) begin -= space_at_end(before.substr(done));
    if (token.takes_right) end += space_at_begin(behind);
    if (done < begin) take_text(text.substr(done, begin - done), done == 0);
    take_token(token.id);
    done = std::max(done, end);
  }
  if (done < text.size()) take_text(text.substr(done), done == 0);
}

}  // namespace troupe::storage
