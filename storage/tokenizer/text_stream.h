#pragma once

#include <span>
#include <string>
#include <vector>

#include "storage/tokenizer/tokenizer.h"

namespace troupe::storage {

/// Decodes tokens one by one. The texts, concatenated, are the text of all tokens. A character
/// whose bytes are spread over several tokens comes with the last of them.
class TextStream {
 public:
  /// The tokens in `before` are not given, but may decide how the next one is written. The
  /// tokenizer must outlive the stream.
  TextStream(const Tokenizer& tokenizer, std::span<const std::int32_t> before);

  std::string next(std::int32_t token);
  /// Returns what was held back for a character that is still incomplete.
  std::string rest();

 private:
  std::string text_behind(bool takes_incomplete);

  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> tokens_;
  std::size_t given_;            // The texts of so many tokens were given,
  std::size_t given_bytes_ = 0;  // and so many bytes of those behind them.
  int held_ = 0;  // After so many tokens in a row the text ended with a replaced byte.
};

}  // namespace troupe::storage
