#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/result.h"
#include "storage/files/files.h"

namespace troupe::storage {

/// A token that is found in a text as it stands, before anything is split: "<|endoftext|>".
struct AddedToken {
  std::string text;
  std::int32_t id = 0;
};

/// What makes a byte-level BPE tokenizer. Tokens are bytes here, not the printable stand-ins that
/// files spell them with.
struct TokenizerTables {
  std::vector<std::string> tokens;  // By id. Empty where an id is not used.
  struct Merge {
    std::int32_t left, right, merged;
  };
  std::vector<Merge> merges;  // The first is tried first.
  std::vector<AddedToken> added;
  enum class PrefixSpace { none, added } prefix_space = PrefixSpace::none;
};

/// Byte-level byte pair encoding as GPT-2 has it. Every text can be encoded, and decodes to itself.
class Tokenizer {
 public:
  /// The tables are checked: ids within bounds, a token for every byte, merges that give what they
  /// say.
  static Result<Tokenizer> make(TokenizerTables tables);

  /// A tokenizer.json, or a vocab.json with a merges.txt beside it, or a directory with either.
  static Result<Tokenizer> open(Files& files, const std::string& path);

  const TokenizerTables& tables() const { return tables_; }
  /// Ids are in [0, vocabulary()).
  std::int64_t vocabulary() const { return static_cast<std::int64_t>(tables_.tokens.size()); }

  std::vector<std::int32_t> encode(std::string_view text) const;
  /// The error names the first id that is not in the vocabulary.
  Result<std::string> decode(std::span<const std::int32_t> tokens) const;
  /// The added token that ends a document, if there is one: "<|endoftext|>" or "</s>".
  const AddedToken* end_of_text() const;

 private:
  struct Merged {
    std::int32_t rank, id;
  };
  /// The longest one that the text begins with; null where there is none.
  const AddedToken* added_at(std::string_view text) const;
  void encode_plain(std::string_view text, std::vector<std::int32_t>& out) const;
  void encode_word(std::string_view word, std::vector<std::int32_t>& out) const;

  TokenizerTables tables_;
  std::vector<std::int32_t> byte_ids_;
  std::unordered_map<std::uint64_t, Merged> merges_;
  std::array<std::vector<std::size_t>, 256> added_by_first_;  // By first byte, the longest first.
};

/// A tokenizer with at most `vocabulary` tokens (at least 256, plus one for "<|endoftext|>") whose
/// merges are the most frequent ones of the text. Equal texts give equal tokenizers.
Result<Tokenizer> train_tokenizer(std::string_view text, std::int64_t vocabulary);

/// Reads and writes the tokenizer.json of Hugging Face. Only byte-level BPE is read; the error says
/// what else was found.
Result<TokenizerTables> parse_tokenizer_json(std::string_view text);
std::string to_tokenizer_json(const Tokenizer& tokenizer);

/// Reads GPT-2's vocab.json and merges.txt.
Result<TokenizerTables> parse_vocab_and_merges(std::string_view vocab, std::string_view merges);

}  // namespace troupe::storage
