#include "storage/tokenizer/word_piece.h"

#include "core/text.h"

namespace troupe::storage {
namespace {

bool is_longer(std::string_view word, std::int64_t most) {
  for (; !word.empty(); word.remove_prefix(first_character(word).bytes))
    if (most-- == 0) return true;
  return false;
}

}  // namespace

WordPiece::WordPiece(Trie trie, Settings settings)
    : trie_(std::move(trie)), settings_(std::move(settings)) {
  continued_ = trie_.walk(Trie::root, settings_.prefix);
}

void WordPiece::encode(std::string_view piece, std::vector<std::int32_t>& out) const {
  const auto before = out.size();
  const auto give_up = [&] {
    out.resize(before);
    out.push_back(settings_.unknown);
  };
  if (is_longer(piece, settings_.longest_word)) return give_up();
  for (auto from = Trie::root; !piece.empty(); from = continued_) {
    const auto found = from == Trie::none ? Trie::Match() : trie_.longest(piece, from);
    if (found.bytes == 0) return give_up();
    out.push_back(found.value);
    piece.remove_prefix(found.bytes);
  }
}

}  // namespace troupe::storage
