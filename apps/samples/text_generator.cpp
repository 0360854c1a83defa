#include "apps/samples/text_generator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <sstream>
#include <utility>

#include "core/random.h"

namespace troupe::apps {
namespace {

/// Returns a number that is smaller for likelier tokens: for higher logits, and then for lower
/// tokens. Its lower half is the token.
std::uint64_t rank_of(float logit, std::size_t token) {
  constexpr std::uint32_t sign = 0x80000000u;
  const auto bits = std::bit_cast<std::uint32_t>(logit == 0 ? 0.0f : logit);  // -0 is 0.
  const std::uint32_t descending = bits & sign ? bits : ~(bits | sign);
  return std::uint64_t{descending} << 32 | token;
}
std::size_t token_of(std::uint64_t rank) { return rank & 0xffffffffu; }

/// Draws a token from the `top_k` likeliest (0: all) by a random number in [0, 1).
std::int32_t draw(std::span<const float> logits, double temperature, std::int64_t top_k,
                  double random) {
  std::vector<std::uint64_t> ranks(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) ranks[i] = rank_of(logits[i], i);
  const auto drawn = [](std::uint64_t rank) { return static_cast<std::int32_t>(token_of(rank)); };
  if (temperature == 0) return drawn(*std::ranges::min_element(ranks));
  const bool are_all = top_k <= 0 || static_cast<std::size_t>(top_k) >= ranks.size();
  const auto count = are_all ? ranks.size() : static_cast<std::size_t>(top_k);
  if (are_all)
    std::ranges::sort(ranks);
  else
    std::ranges::partial_sort(ranks, ranks.begin() + static_cast<std::ptrdiff_t>(count));
  const double highest = logits[token_of(ranks[0])];
  std::vector<double> upto(count);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i)
    upto[i] = sum += std::exp((logits[token_of(ranks[i])] - highest) / temperature);
  const auto found = std::upper_bound(upto.begin(), upto.end(), random * sum);
  return drawn(ranks[std::min(static_cast<std::size_t>(found - upto.begin()), count - 1)]);
}

/// Computes what may follow a text that grows token by token. While the text fits the context, a
/// token costs one row of each product. Beyond it the positions of all tokens change with each new
/// one, so each costs a pass over the whole context.
class Reader {
 public:
  /// The text will have at most `most` tokens.
  Reader(TrainedModel& model, std::size_t most)
      : model_(model), context_(static_cast<std::size_t>(model.model().sample.input[0])) {
    if (model.can_continue())
      text_ = model.begin_text(static_cast<std::int64_t>(std::min(most, context_)));
  }

  /// Returns the logits of the next token. The text must begin with that of the last call.
  std::span<const float> behind(const Tokens& text) {
    const bool is_longer = text.size() > context_;
    if (is_longer) text_.reset();  // Frees the caches.
    if (text_)
      logits_ = model_.continue_text(
          last_of(text, text.size() - static_cast<std::size_t>(text_->tokens)), *text_);
    else
      logits_ = model_.evaluate(last_of(text, is_longer ? context_ : text.size()));
    const auto classes = model_.model().classes;
    return {logits_.f32() + logits_.count() - classes, static_cast<std::size_t>(classes)};
  }

 private:
  Tensor last_of(const Tokens& text, std::size_t count) {
    Tensor input = model_.stream().make({1, static_cast<std::int64_t>(count)}, DType::i32);
    std::copy(text.end() - static_cast<std::ptrdiff_t>(count), text.end(),
              input.data<std::int32_t>());
    return input;
  }

  TrainedModel& model_;
  std::size_t context_;
  std::optional<models::ContinuedText> text_;  // Nothing once the context is full.
  Tensor logits_;
};

}  // namespace

Result<Script> Script::open(storage::Files& files, const std::string& tokenizer,
                            std::int64_t vocabulary) {
  Script script;
  script.vocabulary_ = vocabulary;
  if (tokenizer.empty()) return script;
  auto opened = storage::Tokenizer::open(files, tokenizer);
  if (!opened) return opened.error();
  script.tokenizer_ = std::move(*opened);
  return script;
}

Result<Tokens> Script::read(const std::string& text) const {
  Tokens tokens;
  if (tokenizer_) {
    tokens = tokenizer_->around().before;
    const auto of_text = tokenizer_->encode(text);
    tokens.insert(tokens.end(), of_text.begin(), of_text.end());
  } else if (is_bytes()) {
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  } else {
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      char* end = nullptr;
      const long token = std::strtol(word.c_str(), &end, 10);
      if (*end != '\0')
        return Error{"'" + word +
                     "' is not a token's number; give numbers, or the --tokenizer of this model"};
      tokens.push_back(static_cast<std::int32_t>(std::clamp(token, -1L, long{INT32_MAX})));
    }
  }
  for (const auto token : tokens)
    if (token < 0 || token >= vocabulary_)
      return Error{"token " + std::to_string(token) + " is not in the model's vocabulary of " +
                   std::to_string(vocabulary_)};
  return tokens;
}

Script::Writer::Writer(const Script& script, const Tokens& prompt) : script_(script) {
  if (script.tokenizer_) stream_.emplace(*script.tokenizer_, prompt);
}

std::string Script::Writer::next(std::int32_t token) {
  if (stream_) return stream_->next(token);
  return script_.is_bytes() ? std::string(1, static_cast<char>(token))
                            : " " + std::to_string(token);
}

std::string Script::Writer::rest() { return stream_ ? stream_->rest() : ""; }

void generate(TrainedModel& model, const Script& script, const Sampling& sampling, Tokens tokens,
              const std::function<bool(const std::string& text)>& take) {
  // A model needs at least one token.
  if (tokens.empty()) tokens.push_back(0);
  Script::Writer writer(script, tokens);
  Reader reader(model, tokens.size() + static_cast<std::size_t>(sampling.tokens));
  for (std::int64_t i = 0; i < sampling.tokens; ++i) {
    const auto last = reader.behind(tokens);
    const auto word = RandomKey{.seed = sampling.seed}.words(static_cast<std::uint32_t>(i))[0];
    tokens.push_back(draw(last, sampling.temperature, sampling.top_k, uniform(word)));
    if (!take(writer.next(tokens.back()))) return;
  }
  take(writer.rest());
}

}  // namespace troupe::apps
