#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/result.h"
#include "storage/tokenizer/merge_table.h"
#include "storage/tokenizer/steps.h"

namespace troupe::storage {

struct BytePairTables {
  std::vector<std::string> tokens;  // Indexed by id. Unused ids are empty.
  struct Merge {
    std::int32_t left, right, merged;
  };
  std::vector<Merge> merges;   // In order of priority.
  bool is_byte_level = false;  // Tokens are bytes. Otherwise they are characters.
  bool ignore_merges = false;  // A piece that is a token needs no merges.
  bool byte_fallback = false;  // A character without a token becomes tokens of its bytes.
  bool fuse_unknown = false;   // Neighbours without a token become one unknown token.
  std::int32_t unknown = -1;   // Without it what has no token is left out.
};

/// Byte pair encoding: a piece is cut into bytes or characters, and the pair of neighbours with the
/// highest priority is merged until no pair is left.
class BytePairs final : public TokenModel {
 public:
  /// Checks the tables: ids within bounds, a token for every byte where bytes are tokens, and
  /// merges whose token equals their joined parts.
  static Result<std::shared_ptr<const BytePairs>> make(BytePairTables tables);

  void encode(std::string_view piece, std::vector<std::int32_t>& out) const override;
  /// Returns whether no merge joins a visible blank (U+2581) to a character before it that is none.
  /// If so, a text may be cut there before it is encoded.
  bool parts_before_blanks() const { return parts_before_blanks_; }

 private:
  void append_symbols(std::string_view piece, std::vector<std::int32_t>& out) const;
  /// Merges the ids behind the first `from`.
  void merge(std::vector<std::int32_t>& ids, std::size_t from) const;
  void merge_long(std::vector<std::int32_t>& ids, std::size_t from) const;

  BytePairTables tables_;
  std::array<std::int32_t, 256> byte_ids_;  // The token of each byte.
  std::unordered_map<char32_t, std::int32_t> character_ids_;
  std::unordered_map<std::string_view, std::int32_t> whole_;  // Points into tables_.
  MergeTable merges_;
  bool parts_before_blanks_ = false;
};

}  // namespace troupe::storage
