#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "storage/tokenizer/steps.h"
#include "storage/tokenizer/trie.h"

namespace troupe::storage {

/// A token that is found as a whole before the text is split: "<|endoftext|>".
struct AddedToken {
  std::string text;
  std::int32_t id = 0;
  bool is_single_word = false;  // Found only where no letter or digit touches it.
  bool takes_left = false;      // Takes the white space before it.
  bool takes_right = false;     // Takes the white space behind it.
  bool is_normalized = false;   // Found in the normalized text.
  bool is_special = false;      // No text, but a mark such as "</s>".
};
Result<std::vector<AddedToken>> read_added_tokens(const Value* value, const std::string& place);

/// Finds added tokens in a text: at each place the longest one.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// Finds each token by the pattern with its index.
  AddedTokens(std::vector<AddedToken> tokens, const std::vector<std::string>& patterns);

  bool empty() const { return tokens_.empty(); }
  /// Calls one of the two for each part of a text, in order. No text is empty.
  void split(std::string_view text, const TakePiece& take_text,
             const std::function<void(std::int32_t id)>& take_token) const;

 private:
  std::vector<AddedToken> tokens_;
  Trie trie_;
};

}  // namespace troupe::storage
