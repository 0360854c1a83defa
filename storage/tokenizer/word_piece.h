#pragma once

#include <map>
#include <string>

#include "storage/tokenizer/steps.h"
#include "storage/tokenizer/trie.h"

namespace troupe::storage {

/// WordPiece: the longest token at the beginning of a word, then the longest one that continues it,
/// and so on. A word that cannot be cut so is one unknown token.
class WordPiece final : public TokenModel {
 public:
  struct Settings {
    std::string prefix;               // The mark of tokens that continue a word: "##".
    std::int64_t longest_word = 100;  // In characters. A longer word is unknown.
    std::int32_t unknown = 0;
  };
  WordPiece(Trie trie, Settings settings);

  void encode(std::string_view piece, std::vector<std::int32_t>& out) const override;

 private:
  Trie trie_;
  Settings settings_;
  Trie::Node continued_;  // Behind the prefix, or none.
};

}  // namespace troupe::storage
