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

/// A token that is matched as a whole before the text is split: "<|endoftext|>".
struct AddedToken {
  std::string text;
  std::int32_t id = 0;
};

/// The tables of a byte-level BPE tokenizer. Tokens are bytes here, not the printable characters by
/// which files spell them.
struct TokenizerTables {
  std::vector<std::string> tokens;  // Indexed by id. Unused ids are empty.
  struct Merge {
    std::int32_t left, right, merged;
  };
  std::vector<Merge> merges;  // In order of priority.
  std::vector<AddedToken> added;
  enum class PrefixSpace { none, added } prefix_space = PrefixSpace::none;
};

/// A byte-level byte pair encoding, as in GPT-2. Every text can be encoded and decodes to itself.
class Tokenizer {
 public:
  /// Checks the tables: ids within bounds, a token for every byte, and merges whose token equals
  /// their joined parts.
  static Result<Tokenizer> make(TokenizerTables tables);

  /// Opens tokenizer.json, or vocab.json with merges.txt beside it, or a directory with either.
  static Result<Tokenizer> open(Files& files, const std::string& path);

  const TokenizerTables& tables() const { return tables_; }
  /// Returns the number of ids: they lie in [0, vocabulary()).
  std::int64_t vocabulary() const { return static_cast<std::int64_t>(tables_.tokens.size()); }

  std::vector<std::int32_t> encode(std::string_view text) const;
  /// Returns the text. The error names the first id that is not in the vocabulary.
  Result<std::string> decode(std::span<const std::int32_t> tokens) const;
  /// Returns the added token that ends a document, if there is one: "<|endoftext|>" or "</s>".
  const AddedToken* end_of_text() const;

 private:
  struct Merged {
    std::int32_t rank, id;
  };
  /// Returns the longest added token that the text begins with, or null.
  const AddedToken* added_at(std::string_view text) const;
  void encode_plain(std::string_view text, std::vector<std::int32_t>& out) const;
  void encode_word(std::string_view word, std::vector<std::int32_t>& out) const;

  TokenizerTables tables_;
  std::vector<std::int32_t> byte_ids_;
  std::unordered_map<std::uint64_t, Merged> merges_;
  std::array<std::vector<std::size_t>, 256> added_by_first_;  // Per first byte, longest first.
};

/// Trains a tokenizer of at most `vocabulary` (at least 257) tokens, "<|endoftext|>" included, on
/// the most frequent merges of the text. Equal texts give equal tokenizers.
Result<Tokenizer> train_tokenizer(std::string_view text, std::int64_t vocabulary);

/// Reads and writes the tokenizer.json of Hugging Face. Reads byte-level BPE only; the error names
/// what else it found.
Result<TokenizerTables> parse_tokenizer_json(std::string_view text);
std::string to_tokenizer_json(const Tokenizer& tokenizer);

/// Reads GPT-2's vocab.json and merges.txt.
Result<TokenizerTables> parse_vocab_and_merges(std::string_view vocab, std::string_view merges);

}  // namespace troupe::storage
