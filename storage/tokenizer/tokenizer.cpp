#include "storage/tokenizer/tokenizer.h"

#include <algorithm>
#include <queue>

#include "storage/tokenizer/words.h"

namespace troupe::storage {
namespace {

constexpr std::size_t most_tokens = std::size_t{1} << 24;

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(left) << 32) | static_cast<std::uint32_t>(right);
}

/// Two neighbours in a word that may be merged. Lowest rank first, then leftmost.
struct Candidate {
  std::int32_t rank, merged;
  std::size_t left, right;
  std::int32_t left_id, right_id;

  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  }
};

/// A part of a word. The remaining parts form a linked list.
struct Symbol {
  std::int32_t id;
  std::size_t previous, next;
};
constexpr std::int32_t gone = -1;
constexpr std::size_t none = static_cast<std::size_t>(-1);

}  // namespace

Result<Tokenizer> Tokenizer::make(TokenizerTables tables) {
  const auto& tokens = tables.tokens;
  if (tokens.size() > most_tokens)
    return Error{"the vocabulary has " + std::to_string(tokens.size()) + " tokens; at most " +
                 std::to_string(most_tokens) + " are read"};
  const auto known = [&](std::int32_t id) {
    return id >= 0 && static_cast<std::size_t>(id) < tokens.size();
  };
  const auto token = [&](std::int32_t id) -> const std::string& {
    return tokens[static_cast<std::size_t>(id)];
  };

  Tokenizer tokenizer;
  tokenizer.byte_ids_.assign(256, gone);
  for (std::size_t id = tokens.size(); id-- > 0;)
    if (tokens[id].size() == 1)
      tokenizer.byte_ids_[static_cast<unsigned char>(tokens[id][0])] =
          static_cast<std::int32_t>(id);
  for (std::size_t byte = 0; byte < 256; ++byte)
    if (tokenizer.byte_ids_[byte] == gone)
      return Error{"there is no token for the byte " + std::to_string(byte) +
                   "; a byte-level tokenizer has one for each"};

  for (std::size_t rank = 0; rank < tables.merges.size(); ++rank) {
    const auto& [left, right, merged] = tables.merges[rank];
    const auto place = "merge " + std::to_string(rank);
    if (!known(left) || !known(right) || !known(merged))
      return Error{place + " has a token that is not in the vocabulary"};
    if (token(left).empty() || token(right).empty() || token(merged) != token(left) + token(right))
      return Error{place + " does not give the token that it says"};
    const Merged entry{static_cast<std::int32_t>(rank), merged};
    if (!tokenizer.merges_.emplace(pair_key(left, right), entry).second)
      return Error{place + " has a pair that an earlier merge has too"};
  }
  for (const auto& added : tables.added)
    if (!known(added.id) || added.text.empty() || token(added.id) != added.text)
      return Error{"the added token \"" + added.text + "\" is not in the vocabulary"};
  // If two tokens begin at the same place, the longer one wins.
  std::sort(tables.added.begin(), tables.added.end(), [](const auto& a, const auto& b) {
    return a.text.size() != b.text.size() ? a.text.size() > b.text.size() : a.text < b.text;
  });
  for (std::size_t i = 0; i < tables.added.size(); ++i)
    tokenizer.added_by_first_[static_cast<unsigned char>(tables.added[i].text.front())].push_back(
        i);
  tokenizer.tables_ = std::move(tables);
  return tokenizer;
}

const AddedToken* Tokenizer::added_at(std::string_view text) const {
  for (const auto index : added_by_first_[static_cast<unsigned char>(text.front())])
    if (text.starts_with(tables_.added[index].text)) return &tables_.added[index];
  return nullptr;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  std::size_t plain = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto* found = added_at(text.substr(at));
    if (!found) {
      ++at;
      continue;
    }
    encode_plain(text.substr(plain, at - plain), ids);
    ids.push_back(found->id);
    plain = at += found->text.size();
  }
  encode_plain(text.substr(plain), ids);
  return ids;
}

void Tokenizer::encode_plain(std::string_view text, std::vector<std::int32_t>& out) const {
  std::string prefixed;
  if (tables_.prefix_space == TokenizerTables::PrefixSpace::added && !text.empty() &&
      text.front() != ' ') {
    prefixed = " " + std::string(text);
    text = prefixed;
  }
  while (!text.empty()) {
    const auto word = first_word(text);
    encode_word(word, out);
    text.remove_prefix(word.size());
  }
}

void Tokenizer::encode_word(std::string_view word, std::vector<std::int32_t>& out) const {
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  for (std::size_t i = 0; i < word.size(); ++i)
    symbols.push_back({byte_ids_[static_cast<unsigned char>(word[i])], i ? i - 1 : none,
                       i + 1 < word.size() ? i + 1 : none});

  // A queue and a linked list keep the time for long words near linear.
  std::priority_queue<Candidate> candidates;
  const auto consider = [&](std::size_t left, std::size_t right) {
    if (left == none || right == none) return;
    const auto at = merges_.find(pair_key(symbols[left].id, symbols[right].id));
    if (at == merges_.end()) return;
    candidates.push(
        {at->second.rank, at->second.id, left, right, symbols[left].id, symbols[right].id});
  };
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) consider(i, i + 1);
  while (!candidates.empty()) {
    const auto best = candidates.top();
    candidates.pop();
    auto& left = symbols[best.left];
    auto& right = symbols[best.right];
    // An earlier merge took one of the two.
    if (left.id != best.left_id || right.id != best.right_id || left.next != best.right) continue;
    left.id = best.merged;
    left.next = right.next;
    right.id = gone;
    if (left.next != none) symbols[left.next].previous = best.left;
    consider(left.previous, best.left);
    consider(best.left, left.next);
  }
  for (const auto& symbol : symbols)
    if (symbol.id != gone) out.push_back(symbol.id);
}

Result<std::string> Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const auto id : ids) {
    if (id < 0 || id >= vocabulary() || tables_.tokens[static_cast<std::size_t>(id)].empty())
      return Error{"token " + std::to_string(id) + " is not in the vocabulary of " +
                   std::to_string(vocabulary())};
    text += tables_.tokens[static_cast<std::size_t>(id)];
  }
  return text;
}

const AddedToken* Tokenizer::end_of_text() const {
  for (const std::string_view text : {"<|endoftext|>", "<|end_of_text|>", "</s>"})
    for (const auto& added : tables_.added)
      if (added.text == text) return &added;
  return nullptr;
}

}  // namespace troupe::storage
