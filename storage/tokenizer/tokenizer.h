#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "storage/files/files.h"
#include "storage/tokenizer/added_tokens.h"
#include "storage/tokenizer/steps.h"

namespace troupe::storage {

/// A tokenizer of Hugging Face's library `tokenizers`. It gives the same tokens and texts as the
/// library does. Bytes that are no UTF-8, which the library does not take, pass every step
/// unchanged: byte-level BPE has tokens for them, and other models treat them as unknown.
class Tokenizer {
 public:
  /// Reads a tokenizer.json. The error names the path of what is not understood, since the tokens
  /// might differ.
  static Result<Tokenizer> read(std::string_view json);
  /// Opens tokenizer.json, or GPT-2's vocab.json with merges.txt beside it, or a directory with
  /// either.
  static Result<Tokenizer> open(Files& files, const std::string& path);

  /// Returns the number of ids: they lie in [0, vocabulary()).
  std::int64_t vocabulary() const { return static_cast<std::int64_t>(tokens_.size()); }
  /// Returns a token as files spell it. An unused id has none.
  const std::string& token(std::int32_t id) const { return tokens_[static_cast<std::size_t>(id)]; }
  const std::vector<AddedToken>& added() const { return added_; }
  /// Returns "byte-level BPE", "BPE", "WordPiece" or "Unigram".
  const std::string& kind() const { return kind_; }
  std::int64_t merges() const { return merges_; }
  /// Returns the tokenizer.json.
  const std::string& json() const { return json_; }

  std::vector<std::int32_t> encode(std::string_view text) const;
  /// Returns the tokens that the post_processor puts before and behind each document, such as
  /// "<s>", or "[CLS]" and "[SEP]". encode() leaves them out.
  const DocumentTemplate& around() const { return around_; }
  /// Returns the text, with special tokens as they are spelled. The error names the first id that
  /// is not in the vocabulary.
  Result<std::string> decode(std::span<const std::int32_t> tokens) const;
  /// Returns the added token that ends a document, if there is one: "<|endoftext|>" or "</s>".
  const AddedToken* end_of_text() const;

 private:
  Status name_tokens(std::vector<std::string> of_model);
  Status check_template() const;
  Status find_added();
  void split(std::size_t step, std::string_view text, bool is_first, const TakePiece& take) const;

  std::string json_, kind_;
  std::int64_t merges_ = 0;
  std::vector<std::string> tokens_;  // Indexed by id. Unused ids are empty.
  std::vector<AddedToken> added_;
  AddedTokens in_text_, in_normalized_;
  std::vector<Normalizer> normalizers_;
  std::vector<Splitter> splitters_;
  std::shared_ptr<const TokenModel> model_;
  DocumentTemplate around_;
  std::vector<Decoder> decoders_;
};

/// Trains a tokenizer of at most `vocabulary` (at least 257) tokens, "<|endoftext|>" included, on
/// the most frequent merges of the text. Equal texts give equal tokenizers.
Result<Tokenizer> train_tokenizer(std::string_view text, std::int64_t vocabulary);

/// Returns the tokenizer.json of GPT-2's vocab.json and merges.txt.
Result<std::string> json_of_gpt2(std::string_view vocab, std::string_view merges);

/// Returns the tokenizer.json of byte-level BPE that splits by GPT-2's rule. `vocabulary` is a map
/// of printable tokens to ids.
std::string byte_level_json(Value vocabulary, Value::List merges,
                            const std::vector<AddedToken>& added);

}  // namespace troupe::storage
