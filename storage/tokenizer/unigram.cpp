#include "storage/tokenizer/unigram.h"

#include <algorithm>
#include <utility>

#include "core/text.h"

namespace troupe::storage {
namespace {

/// A character without a token is less likely than every token, by this difference.
constexpr double unknown_penalty = 10;

/// The best way to the end of a token.
struct Way {
  double score = 0;
  std::int32_t id = Trie::none;
  std::size_t begin = 0;  // The beginning of its last token.
  bool is_there = false;
};

}  // namespace

Unigram::Unigram(Trie trie, Settings settings)
    : trie_(std::move(trie)), settings_(std::move(settings)) {
  const auto& scores = settings_.scores;
  unknown_score_ = *std::min_element(scores.begin(), scores.end()) - unknown_penalty;
}

void Unigram::append_unknown(std::string_view text, std::vector<std::int32_t>& out) const {
  if (!settings_.byte_ids || text == settings_.unknown_text)
    return out.push_back(settings_.unknown);
  for (const char byte : text)
    out.push_back((*settings_.byte_ids)[static_cast<unsigned char>(byte)]);
}

void Unigram::encode(std::string_view piece, std::vector<std::int32_t>& out) const {
  std::vector<Way> ways(piece.size() + 1);
  const auto reach = [&](std::size_t begin, std::size_t end, double score, std::int32_t id) {
    auto& way = ways[end];
    const auto sum = ways[begin].score + score;
    if (!way.is_there || sum > way.score) way = {sum, id, begin, true};
  };
  for (std::size_t at = 0; at < piece.size();) {
    const auto width = first_character(piece.substr(at)).bytes;
    bool has_character = false;
    auto node = Trie::root;
    for (auto end = at; end < piece.size();) {
      node = trie_.child(node, piece[end++]);
      if (node == Trie::none) break;
      const auto id = trie_.value(node);
      if (id == Trie::none) continue;
      reach(at, end, settings_.scores[static_cast<std::size_t>(id)], id);
      has_character |= end == at + width;
    }
    if (!has_character) reach(at, at + width, unknown_score_, settings_.unknown);
    at += width;
  }
  // From the end to the beginning.
  std::vector<std::pair<std::size_t, std::size_t>> tokens;
  for (auto end = piece.size(); end > 0; end = ways[end].begin)
    tokens.emplace_back(ways[end].begin, end);
  std::size_t unknown_from = 0, unknown_to = 0;
  const auto flush = [&] {
    if (unknown_from < unknown_to)
      append_unknown(piece.substr(unknown_from, unknown_to - unknown_from), out);
    unknown_from = unknown_to;
  };
  for (auto token = tokens.rbegin(); token != tokens.rend(); ++token) {
    const auto [begin, end] = *token;
    if (ways[end].id != settings_.unknown) {
      flush();
      out.push_back(ways[end].id);
      continue;
    }
    if (!settings_.fuse_unknown) flush();
    if (unknown_from == unknown_to) unknown_from = begin;
    unknown_to = end;
  }
  flush();
}

}  // namespace troupe::storage
