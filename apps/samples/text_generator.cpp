#include "apps/samples/text_generator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <sstream>
#include <utility>

#include "apps/samples/encoded_text.h"
#include "core/random.h"
#include "storage/data/documents.h"

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

/// Draws a token by a random number in [0, 1).
std::int32_t draw(std::span<const float> logits, const Sampling& sampling, double random) {
  const auto top_k = sampling.top_k;
  const double temperature = sampling.temperature;
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
  auto end = upto.end();
  if (sampling.top_p < 1) {
    const auto last = std::lower_bound(upto.begin(), upto.end() - 1, sampling.top_p * sum);
    sum = *last;
    end = last + 1;
  }
  const auto found = std::upper_bound(upto.begin(), end, random * sum);
  return drawn(ranks[static_cast<std::size_t>(std::min(found, end - 1) - upto.begin())]);
}

/// Computes what may follow a text that grows token by token: that of a causal model, or of a
/// decoder. While it fits the context, a token costs one row of each product. Beyond it the
/// positions of all tokens change with each new one, so each costs a pass over the whole context.
class Reader {
 public:
  /// The text will have at most `most` tokens. `source` is what an encoder reads, or empty.
  Reader(TrainedModel& model, Tokens source, std::size_t most) : model_(model) {
    const auto& sample = model.model().sample;
    if (!source.empty()) encoded_.emplace(model, std::move(source));
    context_ = static_cast<std::size_t>(encoded_ ? sample.target[0] : sample.input[0]);
    const auto room = static_cast<std::int64_t>(std::min(most, context_));
    if (encoded_ ? encoded_->can_continue() : model.can_continue())
      text_ = encoded_ ? encoded_->begin_text(room) : model.begin_text(room);
  }

  /// Returns the logits of the next token. The text must begin with that of the last call.
  std::span<const float> behind(const Tokens& text) {
    const bool is_longer = text.size() > context_;
    if (is_longer) text_.reset();  // Frees the caches.
    if (text_) {
      const auto next = last_of(text, text.size() - static_cast<std::size_t>(text_->tokens));
      logits_ = encoded_ ? encoded_->continue_text(next, *text_)
                         : model_.continue_text(tensor_of(next), *text_);
    } else {
      const auto whole = last_of(text, is_longer ? context_ : text.size());
      logits_ = encoded_ ? encoded_->behind(whole) : model_.evaluate(tensor_of(whole));
    }
    const auto classes = logits_.shape().last();
    return {logits_.f32() + logits_.count() - classes, static_cast<std::size_t>(classes)};
  }

 private:
  static Tokens last_of(const Tokens& text, std::size_t count) {
    return {text.end() - static_cast<std::ptrdiff_t>(count), text.end()};
  }
  Tensor tensor_of(const Tokens& tokens) {
    Tensor input = model_.stream().make({1, std::ssize(tokens)}, DType::i32);
    std::ranges::copy(tokens, input.data<std::int32_t>());
    return input;
  }

  TrainedModel& model_;
  std::optional<EncodedText> encoded_;  // Nothing: the model is causal.
  std::size_t context_ = 0;
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

std::optional<std::int32_t> Script::end() const {
  if (is_of_numbers()) return {};
  return storage::end_of_documents(tokenizer_ ? &*tokenizer_ : nullptr);
}

Result<Tokens> Script::read_document(const std::string& text) const {
  auto tokens = read(text);
  if (!tokens) return tokens;
  if (tokenizer_ && !tokenizer_->around().behind.empty()) {
    const auto& behind = tokenizer_->around().behind;
    tokens->insert(tokens->end(), behind.begin(), behind.end());
  } else if (const auto last = end()) {
    tokens->push_back(*last);
  }
  return tokens;
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

Status check_writes_text(const models::Model& model) {
  if (model.sample.input_type != DType::i32)
    return Error{"a " + model.kind + " takes no tokens; only language models can be sampled from"};
  if (!model.predicts_tokens())
    return Error{"a " + model.kind +
                 " predicts numbers, not tokens; only language models can be sampled from"};
  const auto& more = model.sample.more;
  if (!more.empty() && !is_encoder_decoder(model))
    return Error{
        "a " + model.kind + " takes more inputs than the text that it would continue, such as '" +
        more.front().name +
        "'; only models of one input, and those of an encoder and a decoder, can be sampled from"};
  return Done{};
}

Result<Prompt> prompt_of(const models::Model& model, const Script& script, const std::string& text,
                         std::int32_t start) {
  const bool has_encoder = is_encoder_decoder(model);
  auto tokens = has_encoder ? script.read_document(text) : script.read(text);
  if (!tokens) return tokens.error();
  if (tokens->empty()) tokens->push_back(0);  // A model needs at least one token.
  if (!has_encoder) return Prompt{{}, std::move(*tokens)};
  const auto most = model.sample.input[0];
  if (std::ssize(*tokens) > most)
    return Error{"found " + std::to_string(tokens->size()) +
                 " tokens, wanted at most as many as the encoder reads, " + std::to_string(most)};
  return Prompt{std::move(*tokens), {start}};
}

Tokens generate(TrainedModel& model, const Script& script, const Sampling& sampling, Prompt prompt,
                const std::function<bool(const std::string& text)>& take) {
  Tokens text = prompt.written;
  const auto before = std::ssize(text);
  const auto drawn = [&] { return Tokens(text.begin() + before, text.end()); };
  // A decoder's text does not go on with another one.
  Script::Writer writer(script, prompt.read.empty() ? text : Tokens());
  Reader reader(model, std::move(prompt.read),
                text.size() + static_cast<std::size_t>(sampling.tokens));
  for (std::int64_t i = 0; i < sampling.tokens; ++i) {
    const auto last = reader.behind(text);
    const auto word = RandomKey{.seed = sampling.seed}.words(static_cast<std::uint32_t>(i))[0];
    text.push_back(draw(last, sampling, uniform(word)));
    if (std::ranges::find(sampling.ends, text.back()) != sampling.ends.end()) break;
    if (!take(writer.next(text.back()))) return drawn();
  }
  take(writer.rest());
  return drawn();
}

}  // namespace troupe::apps
