#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/value.h"

namespace troupe::storage {

// The steps of a tokenizer, in the order in which a text passes them. Each is read from the value
// at `place` of a tokenizer.json; null stands for no step.

/// Changes a text before it is split.
struct Normalizer {
  std::function<std::string(std::string_view text)> change;
  double growth = 1;  // A text becomes at most so many times as long.
};
Result<std::vector<Normalizer>> read_normalizers(const Value* value, const std::string& place);
std::string normalized(const std::vector<Normalizer>& steps, std::string_view text);

/// Takes a piece of a text. `is_first` says that the text begins with the piece.
using TakePiece = std::function<void(std::string_view piece, bool is_first)>;
/// Splits a piece, which is not empty, into smaller ones.
using Splitter = std::function<void(std::string_view piece, bool is_first, const TakePiece& take)>;
struct Splitters {
  std::vector<Splitter> steps;
  bool is_byte_level = false;  // The model works on bytes. Files spell each by a character.
};
Result<Splitters> read_splitters(const Value* value, const std::string& place);

/// Makes tokens of a piece.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  virtual void encode(std::string_view piece, std::vector<std::int32_t>& out) const = 0;
};
struct ReadModel {
  std::shared_ptr<const TokenModel> model;
  std::vector<std::string> tokens;  // Indexed by id, as the file spells them. Unused ids: empty.
  std::string kind;
  std::int64_t merges = 0;
  Splitter splitter;  // Cuts pieces further without changing the tokens. May be empty.
};
/// `is_added` says whether a token is an added one, which files spell as it is.
Result<ReadModel> read_model(const Value& value, const std::string& place, bool is_byte_level,
                             const std::function<bool(std::string_view)>& is_added);

/// The tokens that stand before and behind each document.
struct DocumentTemplate {
  std::vector<std::int32_t> before, behind;
};
Result<DocumentTemplate> read_template(const Value* value, const std::string& place);

/// Changes the texts of tokens so that, concatenated, they are the text.
struct Decoder {
  std::function<void(std::vector<std::string>& texts)> change;
  double growth = 1;
};
Result<std::vector<Decoder>> read_decoders(const Value* value, const std::string& place);

/// The limit on the product of all growths, so that a file cannot make a text explode.
constexpr double most_growth = 256;
/// The limit on the steps of a sequence.
constexpr std::size_t most_steps = 32;

}  // namespace troupe::storage
