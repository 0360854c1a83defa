#include "apps/samples/encoded_text.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe::apps {
namespace {

// The names that data gives to these fields.
constexpr const char* decoder_tokens = "decoder_tokens";
constexpr const char* memory_span = "memory_span";
constexpr const char* encoder_span = "span";

std::size_t number_of(const models::Model& model, const char* name) {
  const auto& more = model.sample.more;
  const auto found = std::ranges::find(more, name, &models::SampleForm::Input::name);
  return static_cast<std::size_t>(found - more.begin());
}
std::size_t number_of_tokens(const models::Model& model) {
  return number_of(model, decoder_tokens);
}

/// Returns the places of the inputs with a row for each token that the decoder writes.
std::vector<std::size_t> inputs_of_decoder(const models::Model& model) {
  std::vector<std::size_t> inputs{number_of_tokens(model)};
  if (const auto span = number_of(model, memory_span); span < model.sample.more.size())
    inputs.push_back(span);
  return inputs;
}

/// Returns the first unit of the decoder: units before it do not depend on what was written.
int first_of_decoder(const models::Model& model) {
  return model.kept[number_of_tokens(model)].first;
}

}  // namespace

bool is_encoder_decoder(const models::Model& model) {
  const auto& more = model.sample.more;
  const auto tokens = number_of_tokens(model);
  return model.predicts_tokens() && tokens < more.size() && more[tokens].type == DType::i32 &&
         more[tokens].shape == model.sample.target &&
         std::ranges::all_of(more, [](const auto& input) {
           return input.name == decoder_tokens || input.name == memory_span ||
                  input.name == encoder_span;
         });
}

EncodedText::EncodedText(TrainedModel& model, std::vector<std::int32_t> source)
    : model_(model),
      source_(std::move(source)),
      decoder_(model.units(
          {first_of_decoder(model.model()), static_cast<int>(model.model().units.size())})) {
  assert(is_encoder_decoder(model.model()) && !source_.empty());
  const int first = first_of_decoder(model.model());
  encoded_.stream = tokens_of(source_);
  for (const auto& input : model.model().sample.more)
    encoded_.kept.push_back(input_of(input, {0}));  // behind() replaces them.
  if (first > 0) encoded_ = model.units({0, first}).evaluate(std::move(encoded_));
  numbers_ = models::kept_across(model.model(), first);
  can_continue_ = model.model().continues_from(first, inputs_of_decoder(model.model()));
}

Tensor EncodedText::behind(const std::vector<std::int32_t>& written) {
  return decoder_.evaluate(with_tokens(written)).stream;
}

Tensor EncodedText::continue_text(const std::vector<std::int32_t>& next,
                                  models::ContinuedText& text) {
  return decoder_.continue_text({with_tokens(next), std::ssize(next)}, text).stream;
}

models::Bundle EncodedText::with_tokens(const std::vector<std::int32_t>& tokens) const {
  models::Bundle input = encoded_;
  const auto& more = model_.model().sample.more;
  for (std::size_t i = 0; i < numbers_.size(); ++i)
    if (const auto number = static_cast<std::size_t>(numbers_[i]); number < more.size())
      input.kept[i] = input_of(more[number], tokens);
  return input;
}

Tensor EncodedText::input_of(const models::SampleForm::Input& input,
                             const std::vector<std::int32_t>& written) const {
  if (input.name == decoder_tokens) return tokens_of(written);
  return spans_of(input.name == memory_span ? written.size() : source_.size());
}

Tensor EncodedText::tokens_of(const std::vector<std::int32_t>& tokens) const {
  Tensor made = model_.stream().make({1, static_cast<std::int64_t>(tokens.size())}, DType::i32);
  std::ranges::copy(tokens, made.data<std::int32_t>());
  return made;
}

/// Returns spans of so many rows that look at all of the source.
Tensor EncodedText::spans_of(std::size_t rows) const {
  Tensor made = model_.stream().make({1, static_cast<std::int64_t>(rows), 2}, DType::i32);
  auto* span = made.data<std::int32_t>();
  for (std::size_t i = 0; i < rows; ++i) {
    span[2 * i] = 0;
    span[2 * i + 1] = static_cast<std::int32_t>(source_.size());
  }
  return made;
}

}  // namespace troupe::apps
