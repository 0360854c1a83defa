#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/samples/trained_model.h"
#include "core/result.h"
#include "storage/files/files.h"
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
  Result<Tokens> read(const std::string& text) const;
  std::string write(std::int32_t token) const;

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

/// Continues `tokens` with those that the model draws, and calls `take` with the text of each.
/// Ends early if `take` returns false. The result depends on the arguments alone. The model reads
/// each token once while the text fits its context. Each token beyond that takes a pass over the
/// last tokens that fit.
void generate(TrainedModel& model, const Script& script, const Sampling& sampling, Tokens tokens,
              const std::function<bool(const std::string& text)>& take);

}  // namespace troupe::apps
