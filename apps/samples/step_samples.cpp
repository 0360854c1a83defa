#include "apps/samples/step_samples.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include "apps/events/event.h"
#include "apps/samples/decoder_tokens.h"
#include "apps/samples/encoded_text.h"
#include "apps/samples/trained_model.h"
#include "config/model_kinds.h"
#include "core/mixture.h"
#include "core/text.h"
#include "storage/checkpoint/checkpoint.h"

namespace troupe::apps {
namespace {

/// The bound of samples that wait, together with the one that is being written.
constexpr int most_pending = 16;
/// An event has at most 64 KiB, and JSON may write a byte as six.
constexpr std::size_t most_prompt = 2048;
constexpr std::size_t most_text = 8192;

/// A tokenizer of bytes may end a sample within a character.
std::string well_formed(std::string_view text) {
  std::string good;
  while (!text.empty()) {
    const Character first = first_character(text);
    append_utf8(good, first.code);
    text.remove_prefix(first.bytes);
  }
  return good;
}

/// The conversion of a run's samples, their prompt, and the tokens that end them.
struct Opened {
  Script script;
  Prompt prompt;
  Tokens ends;
};

/// Returns the training data, the first source of several.
Result<std::string> first_source(const config::RunConfig::Data& data) {
  if (!data.mix) return data.train;
  auto mixture = Mixture::parse(*data.mix);
  if (!mixture) return within("data.mix", mixture.error());
  return std::move(mixture->sources.front());
}

Result<Opened> opened(storage::Files& files, const config::RunConfig& config,
                      const models::Model& trained, const std::string& tokenizer) {
  const auto made =
      config::model_from(config::table_of_writer(config.model.table_for(trained.classes)));
  if (!made) return made.error();
  const models::Model& model = *made;
  if (auto good = check_writes_text(model); !good)
    return Error{"sample.every: " + good.error().text + "; leave it out"};
  auto script = Script::open(files, tokenizer, model.classes);
  if (!script) return within("sample.every", script.error());
  if (script->is_of_numbers())
    return Error{
        "sample.every: the training data (\"" + config.data.mix.value_or(config.data.train) +
        "\") has no tokenizer, so its tokens have no text; prepare the data with `troupe data "
        "prepare --train-tokenizer`, name a tokenizer (\"book.txt?tokenizer=tokenizer.json\"), or "
        "leave out sample.every"};
  if (config.sample.prompt.size() > most_prompt)
    return Error{"sample.prompt: found " + std::to_string(config.sample.prompt.size()) +
                 " bytes, wanted at most " + std::to_string(most_prompt)};
  DecoderTokens decoder;
  if (is_encoder_decoder(model)) {
    const auto data = first_source(config.data);
    if (!data) return data.error();
    const auto tokens = decoder_tokens_of(*data, *script);
    if (!tokens) return within("sample.every", tokens.error());
    decoder = *tokens;
  }
  auto prompt = prompt_of(model, *script, config.sample.prompt, decoder.start);
  if (!prompt) return within("sample.prompt", prompt.error());
  return Opened{std::move(*script), std::move(*prompt), std::move(decoder.ends)};
}

}  // namespace

Status check_samples(storage::Files& files, const config::RunConfig& config,
                     const models::Model& model, const std::string& tokenizer) {
  if (!config.sample.every) return Done{};
  if (auto good = opened(files, config, model, tokenizer); !good) return good.error();
  return Done{};
}

StepSamples::StepSamples(const Context& context, Script script, Prompt prompt, Tokens ends,
                         std::int64_t done)
    : context_(context),
      script_(std::move(script)),
      prompt_(std::move(prompt)),
      ends_(std::move(ends)),
      done_(done),
      loop_(context.env.make_loop({"samples"})) {}

StepSamples::~StepSamples() {
  stop();
  loop_->end();
}

Result<std::unique_ptr<StepSamples>> StepSamples::open(const Context& context,
                                                       const std::string& tokenizer,
                                                       std::int64_t done) {
  auto parts = opened(context.files, context.config, context.model, tokenizer);
  if (!parts) return parts.error();
  return std::unique_ptr<StepSamples>(new StepSamples(
      context, std::move(parts->script), std::move(parts->prompt), std::move(parts->ends), done));
}

void StepSamples::saved(std::int64_t step, const std::string& directory) {
  const auto every = *context_.config.sample.every;
  if (step <= done_) return;  // A run that has gone back repeats steps.
  const bool is_due = step / every > std::exchange(done_, step) / every;
  if (!is_due || is_stopped_) return;
  if (++pending_ > most_pending) {
    --pending_;
    return warn("no sample of step " + std::to_string(step) +
                ": those before are not done; write fewer tokens (sample.tokens) or fewer samples "
                "(sample.every)");
  }
  loop_->post([this, step, directory] {
    write(step, directory);
    --pending_;
  });
}

void StepSamples::when_idle(std::function<void()> then) {
  is_awaited_ = true;
  if (loop_->post(then) != Loop::Posted::yes) then();
}

void StepSamples::write(std::int64_t step, const std::string& directory) {
  if (is_stopped_) return;
  auto text = text_from(directory);
  if (is_stopped_) return;
  if (!text) return warn("no sample of step " + std::to_string(step) + ": " + text.error().text);
  const auto& config = context_.config;
  Value sample = event("sample", config.name);
  sample.set("step", step);
  sample.set("prompt", config.sample.prompt);
  sample.set("text", well_formed(*text));
  sample.set("temperature", config.sample.temperature);
  sample.set("seed", static_cast<std::int64_t>(config.sample.seed));
  context_.record(sample);
}

/// Returns what the model of a checkpoint writes after the prompt.
Result<std::string> StepSamples::text_from(const std::string& directory) {
  const auto& config = context_.config;
  const auto deadline = context_.env.now() + config.limits.save_patience;
  const auto checkpoint = storage::Checkpoint::open(context_.files, directory);
  if (!checkpoint) return checkpoint.error();
  // One thread: the devices need the cores. The number of threads changes no bit.
  const auto trained = TrainedModel::open(*checkpoint, 1, kernels::Precision::fp32,
                                          WhichWeights::newest, ModelUse::writing);
  if (!trained) return trained.error();
  std::string text;
  bool is_late = false;
  const Sampling sampling{config.sample.tokens, config.sample.temperature, 0, config.sample.seed,
                          ends_};
  generate(**trained, script_, sampling, prompt_, [&](const std::string& token) {
    text += token;
    if (is_awaited_) context_.alive();
    is_late = context_.env.now() > deadline;
    return !is_late && !is_stopped_ && text.size() < most_text;
  });
  if (is_late)
    return Error{"it took longer than limits.save_patience; write fewer tokens (sample.tokens)"};
  return text;
}

void StepSamples::warn(const std::string& text) const {
  Value warning = event("warn", context_.config.name);
  warning.set("text", text);
  context_.record(warning);
}

}  // namespace troupe::apps
