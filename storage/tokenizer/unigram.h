#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "storage/tokenizer/steps.h"
#include "storage/tokenizer/trie.h"

namespace troupe::storage {

/// A model in which each token has the logarithm of its probability. Cuts a piece into the tokens
/// whose sum is highest. Among equal sums the one wins whose last token is longest.
class Unigram final : public TokenModel {
 public:
  struct Settings {
    std::vector<double> scores;  // Indexed by id.
    std::int32_t unknown = 0;
    std::string unknown_text;
    bool fuse_unknown = true;  // Neighbours without a token become one unknown token.
    std::optional<std::array<std::int32_t, 256>> byte_ids;  // The tokens for byte fallback.
  };
  Unigram(Trie trie, Settings settings);

  void encode(std::string_view piece, std::vector<std::int32_t>& out) const override;

 private:
  void append_unknown(std::string_view text, std::vector<std::int32_t>& out) const;

  Trie trie_;
  Settings settings_;
  double unknown_score_;
};

}  // namespace troupe::storage
