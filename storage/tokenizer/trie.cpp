#include "storage/tokenizer/trie.h"

#include <algorithm>

namespace troupe::storage {

Trie::Trie(std::vector<std::pair<std::string, std::int32_t>> words) {
  std::sort(words.begin(), words.end());
  /// The words from `begin` to `end` have their first `depth` bytes in common.
  struct Group {
    std::size_t begin, end, depth;
  };
  std::vector<Group> groups = {{0, words.size(), 0}};
  bytes_.push_back(0);
  for (std::size_t node = 0; node < groups.size(); ++node) {
    auto [at, end, depth] = groups[node];
    first_.push_back(static_cast<Node>(groups.size()));
    const bool is_word = at < end && words[at].first.size() == depth;
    values_.push_back(is_word ? words[at++].second : none);
    while (at < end) {
      const char byte = words[at].first[depth];
      const auto begin = at;
      while (at < end && words[at].first[depth] == byte) ++at;
      bytes_.push_back(static_cast<unsigned char>(byte));
      groups.push_back({begin, at, depth + 1});
    }
  }
  first_.push_back(static_cast<Node>(groups.size()));
  of_root_.fill(none);
  for (auto node = first_[0]; node < first_[1]; ++node)
    of_root_[bytes_[static_cast<std::size_t>(node)]] = node;
}

Trie::Node Trie::child(Node node, char byte) const {
  const auto wanted = static_cast<unsigned char>(byte);
  if (node == root) return of_root_[wanted];
  const auto begin = bytes_.begin() + first_[static_cast<std::size_t>(node)];
  const auto end = bytes_.begin() + first_[static_cast<std::size_t>(node) + 1];
  const auto at = std::lower_bound(begin, end, wanted);
  return at != end && *at == wanted ? static_cast<Node>(at - bytes_.begin()) : none;
}

Trie::Node Trie::walk(Node node, std::string_view bytes) const {
  for (const char byte : bytes) {
    if (node == none) break;
    node = child(node, byte);
  }
  return node;
}

Trie::Match Trie::longest(std::string_view text, Node from) const {
  Match found;
  for (std::size_t i = 0; i < text.size(); ++i) {
    from = child(from, text[i]);
    if (from == none) break;
    if (value(from) != none) found = {i + 1, value(from)};
  }
  return found;
}

}  // namespace troupe::storage
