#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/samples/trained_model.h"
#include "core/result.h"
#include "storage/files/files.h"
#include "storage/tokenizer/text_stream.h"
#include "storage/tokenizer/tokenizer.h"

namespace troupe::apps {

using Tokens = std::vector<std::int32_t>;

/// The conversion between text and tokens: a tokenizer, bytes, or the numbers themselves.
class Script {
 public:
  /// `tokenizer` is a path; without one (empty) a vocabulary of 256 means bytes.
  static Result<Script> open(storage::Files& files, const std::string& tokenizer,
                             std::int64_t vocabulary);

  /// Returns whether tokens are numbers without a text.
  bool is_of_numbers() const { return !tokenizer_ && !is_bytes(); }
  /// Returns the tokens of a prompt, behind those that the tokenizer puts before each document.
  Result<Tokens> read(const std::string& text) const;

  /// Writes tokens one by one. The texts, concatenated, are the text of all.
  class Writer {
   public:
    /// The script must outlive the writer.
    Writer(const Script& script, const Tokens& prompt);
    std::string next(std::int32_t token);
    /// Returns the bytes that were held back for a character that never became complete.
    std::string rest();

   private:
    const Script& script_;
    std::optional<storage::TextStream> stream_;
  };

 private:
  bool is_bytes() const { return vocabulary_ == 256; }

  std::optional<storage::Tokenizer> tokenizer_;
  std::int64_t vocabulary_ = 0;
};

/// How to choose tokens.
struct Sampling {
  std::int64_t tokens = 100;
  double temperature = 1;  // 0 always takes the likeliest token.
  std::int64_t top_k = 0;  // Draws from the likeliest ones; 0: from all.
  std::uint64_t seed = 1;
};

/// Continues `tokens` with those that the model draws, and calls `take` with the text of each. The
/// text is empty while a character is incomplete.
/// Ends early if `take` returns false. The result depends on the arguments alone. The model reads
/// each token once while the text fits its context. Each token beyond that takes a pass over the
/// last tokens that fit.
void generate(TrainedModel& model, const Script& script, const Sampling& sampling, Tokens tokens,
              const std::function<bool(const std::string& text)>& take);

}  // namespace troupe::apps
