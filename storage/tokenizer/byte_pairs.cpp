#include "storage/tokenizer/byte_pairs.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "core/text.h"
#include "storage/tokenizer/byte_tokens.h"

namespace troupe::storage {
namespace {

constexpr std::int32_t no_token = -1;
constexpr std::size_t no_symbol = static_cast<std::size_t>(-1);
constexpr char32_t visible_blank = 0x2581;

/// Two neighbours in a piece that may be merged. Lowest rank first, then leftmost.
struct Candidate {
  std::int32_t rank, merged;
  std::size_t left, right;
  std::int32_t left_id, right_id;

  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  }
};

/// A part of a piece. The remaining parts form a linked list.
struct Symbol {
  std::int32_t id;
  std::size_t previous, next;
};

bool has_blank_inside(std::string_view token) {
  bool is_behind = false;  // A character that is no blank was seen.
  while (!token.empty()) {
    const auto next = first_character(token);
    if (next.code == visible_blank && is_behind) return true;
    is_behind = next.code != visible_blank;
    token.remove_prefix(next.bytes);
  }
  return false;
}

Status check_merges(const BytePairTables& tables, MergeTable& merges) {
  const auto known = [&](std::int32_t id) {
    return id >= 0 && static_cast<std::size_t>(id) < tables.tokens.size();
  };
  const auto token = [&](std::int32_t id) -> const std::string& {
    return tables.tokens[static_cast<std::size_t>(id)];
  };
  for (std::size_t rank = 0; rank < tables.merges.size(); ++rank) {
    const auto& [left, right, merged] = tables.merges[rank];
    const auto place = "merges[" + std::to_string(rank) + "]: ";
    if (!known(left) || !known(right) || !known(merged))
      return Error{place + "has a token that is not in the vocabulary"};
    if (token(left).empty() || token(right).empty() || token(merged) != token(left) + token(right))
      return Error{place + "does not give the token that it says"};
    if (!merges.add(left, right, {static_cast<std::int32_t>(rank), merged}))
      return Error{place + "is a pair that an earlier merge has too"};
  }
  return Done{};
}

}  // namespace

Result<std::shared_ptr<const BytePairs>> BytePairs::make(BytePairTables given) {
  auto made = std::make_shared<BytePairs>();
  auto& tables = made->tables_ = std::move(given);
  made->merges_ = MergeTable(tables.merges.size());
  if (auto status = check_merges(tables, made->merges_); !status) return status.error();

  made->byte_ids_.fill(no_token);
  for (std::size_t id = tables.tokens.size(); id-- > 0;) {
    const auto& token = tables.tokens[id];
    if (token.empty()) continue;
    const auto number = static_cast<std::int32_t>(id);
    if (tables.ignore_merges) made->whole_[token] = number;
    const auto first = first_character(token);
    if (tables.is_byte_level && token.size() == 1)
      made->byte_ids_[static_cast<unsigned char>(token[0])] = number;
    else if (!tables.is_byte_level && first.bytes == token.size() && !first.is_malformed())
      made->character_ids_[first.code] = number;
    if (!tables.is_byte_level && tables.byte_fallback)
      if (const auto byte = byte_of_token(token)) made->byte_ids_[*byte] = number;
  }
  if (tables.is_byte_level || tables.byte_fallback)
    for (std::size_t byte = 0; byte < 256; ++byte)
      if (made->byte_ids_[byte] == no_token)
        return Error{"vocab: has no token for the byte " + std::to_string(byte) + "; " +
                     (tables.is_byte_level
                          ? "a byte-level tokenizer has one for each"
                          : "with byte_fallback there is one for each, such as \"" +
                                token_of_byte(static_cast<unsigned char>(byte)) + "\"")};
  made->parts_before_blanks_ =
      !tables.is_byte_level && !tables.ignore_merges &&
      made->character_ids_.contains(visible_blank) &&
      std::none_of(tables.merges.begin(), tables.merges.end(), [&](const auto& merge) {
        return has_blank_inside(tables.tokens[static_cast<std::size_t>(merge.merged)]);
      });
  return std::shared_ptr<const BytePairs>(std::move(made));
}

void BytePairs::encode(std::string_view piece, std::vector<std::int32_t>& out) const {
  if (tables_.ignore_merges)
    if (const auto at = whole_.find(piece); at != whole_.end()) return out.push_back(at->second);
  const auto from = out.size();
  append_symbols(piece, out);
  constexpr std::size_t few = 32;
  if (out.size() - from <= few)
    merge(out, from);
  else
    merge_long(out, from);
}

void BytePairs::append_symbols(std::string_view piece, std::vector<std::int32_t>& out) const {
  if (tables_.is_byte_level) {
    for (const char byte : piece) out.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    return;
  }
  bool is_unknown = false;  // The character before has no token.
  while (!piece.empty()) {
    const auto next = first_character(piece);
    const auto at = next.is_malformed() ? character_ids_.end() : character_ids_.find(next.code);
    if (at != character_ids_.end()) {
      out.push_back(at->second);
      is_unknown = false;
    } else if (tables_.byte_fallback) {
      for (const char byte : piece.substr(0, next.bytes))
        out.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    } else if (tables_.unknown != no_token && !(is_unknown && tables_.fuse_unknown)) {
      out.push_back(tables_.unknown);
      is_unknown = true;
    }
    piece.remove_prefix(next.bytes);
  }
}

void BytePairs::merge(std::vector<std::int32_t>& ids, std::size_t from) const {
  // For a short piece looking at all pairs before each merge is faster than a queue.
  constexpr auto never = std::numeric_limits<std::int32_t>::max();
  std::array<Merged, 32> pairs;  // pairs[i] merges the tokens i and i + 1.
  auto* const tokens = ids.data() + from;
  auto count = ids.size() - from;
  const auto look_up = [&](std::size_t i) {
    const auto* merged = merges_.find(tokens[i], tokens[i + 1]);
    pairs[i] = merged ? *merged : Merged{never, no_token};
  };
  for (std::size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i)
      if (pairs[i].rank < pairs[best].rank) best = i;
    if (pairs[best].rank == never) break;
    tokens[best] = pairs[best].id;
    for (std::size_t i = best + 1; i + 1 < count; ++i) {
      tokens[i] = tokens[i + 1];
      pairs[i] = pairs[i + 1];
    }
    --count;
    if (best > 0) look_up(best - 1);
    if (best + 1 < count) look_up(best);
  }
  ids.resize(from + count);
}

void BytePairs::merge_long(std::vector<std::int32_t>& ids, std::size_t from) const {
  const auto count = ids.size() - from;
  std::vector<Symbol> symbols;
  symbols.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    symbols.push_back({ids[from + i], i ? i - 1 : no_symbol, i + 1 < count ? i + 1 : no_symbol});
  ids.resize(from);

  // A queue and a linked list keep the time for long pieces near linear.
  std::priority_queue<Candidate> candidates;
  const auto consider = [&](std::size_t left, std::size_t right) {
    if (left == no_symbol || right == no_symbol) return;
    const auto* merged = merges_.find(symbols[left].id, symbols[right].id);
    if (!merged) return;
    candidates.push({merged->rank, merged->id, left, right, symbols[left].id, symbols[right].id});
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
    right.id = no_token;
    if (left.next != no_symbol) symbols[left.next].previous = best.left;
    consider(left.previous, best.left);
    consider(best.left, left.next);
  }
  for (const auto& symbol : symbols)
    if (symbol.id != no_token) ids.push_back(symbol.id);
}

}  // namespace troupe::storage
