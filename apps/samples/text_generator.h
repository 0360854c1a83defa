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
  /// Returns the number of tokens of the model.
  std::int64_t vocabulary() const { return vocabulary_; }
  /// Returns the token with which a document of the data ends, if there is one.
  std::optional<std::int32_t> end() const;
  /// Returns the tokens of a prompt, behind those that the tokenizer puts before each document.
  Result<Tokens> read(const std::string& text) const;
  /// Returns the tokens of a whole document, with those around it.
  Result<Tokens> read_document(const std::string& text) const;

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
  Tokens ends = {};  // Each of them ends the text, and is not written.
  double top_p = 1;  // Draws from the fewest likeliest tokens that have this probability together.
};

/// A text with which a model goes on.
struct Prompt {
  Tokens read;     // The text that the encoder reads; empty if the model has none.
  Tokens written;  // The text so far.
};

/// Returns an error unless the model writes texts.
Status check_writes_text(const models::Model& model);

/// Returns the prompt that a text makes: a model with an encoder reads it, and its decoder begins
/// with `start`. Other models continue it.
Result<Prompt> prompt_of(const models::Model& model, const Script& script, const std::string& text,
                         std::int32_t start);

/// Continues what is written with tokens that the model draws, and calls `take` with the text of
/// each. The text is empty while a character is incomplete.
/// Ends early if `take` returns false. The result depends on the arguments alone. A causal model or
/// a decoder reads each token once while the text fits its context. Each token beyond that takes a
/// pass over the last tokens that fit. An encoder reads its text once. Returns the tokens that were
/// drawn.
Tokens generate(TrainedModel& model, const Script& script, const Sampling& sampling, Prompt prompt,
                const std::function<bool(const std::string& text)>& take);

}  // namespace troupe::apps
