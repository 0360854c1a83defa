#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "apps/command.h"
#include "apps/commands/named_checkpoint.h"
#include "apps/machine/machine_share.h"
#include "apps/run/run_setup.h"
#include "apps/samples/decoder_tokens.h"
#include "apps/samples/encoded_text.h"
#include "apps/samples/text_generator.h"

namespace troupe::apps {
namespace {

struct SampleArguments {
  std::string checkpoint;
  std::string prompt;
  std::string tokenizer;
  std::int64_t tokens = 100;
  double temperature = 1;
  std::int64_t top_k = 0;
  double top_p = 1;
  std::uint64_t seed = 1;
  std::optional<std::int32_t> start;
  Tokens stop;
};

/// Returns the tokens with which a decoder begins and ends a text, unless the arguments say others.
Result<DecoderTokens> decoder_tokens_for(storage::Files& files, const TrainedModel& model,
                                         const Script& script) {
  if (model.text_beside("config.json") || model.text_beside("generation_config.json"))
    return decoder_tokens_of(model, script);
  const auto config = config_of(files, model.directory());
  if (!config) return config.error();
  if (!*config) return decoder_tokens_of(model, script);
  const auto sources = training_data((*config)->data);
  if (!sources) return sources.error();
  return decoder_tokens_of(sources->front(), script);
}

Status check_token(std::string_view option, std::int32_t token, const Script& script) {
  if (token < script.vocabulary()) return Done{};
  return Error{std::string(option) + ": token " + std::to_string(token) +
               " is not in the model's vocabulary of " + std::to_string(script.vocabulary())};
}

ExitCode sample(const SampleArguments& arguments, const CommonFlags&) {
  const auto files = storage::disk_files();
  auto trained = open_model(*files, arguments.checkpoint, own_machine_share().cores(),
                            Products::fp32, WhichWeights::newest, ModelUse::writing);
  if (!trained) return invalid(trained.error());
  TrainedModel& model = **trained;
  if (auto good = check_writes_text(model.model()); !good)
    return invalid(within(model.directory(), good.error()));
  const bool has_encoder = is_encoder_decoder(model.model());
  if (arguments.start && !has_encoder)
    return complain(ExitCode::invalid, "error: --start: a " + model.model().kind +
                                           " has no decoder beside an encoder; leave it out");
  const auto own = tokenizer_of(*files, model.directory());
  if (!own) return invalid(own.error());
  const auto script = Script::open(*files, arguments.tokenizer.empty() ? *own : arguments.tokenizer,
                                   model.model().classes);
  if (!script) return complain(ExitCode::invalid, "error: --tokenizer: " + script.error().text);
  DecoderTokens decoder;
  if (has_encoder) {
    auto tokens = decoder_tokens_for(*files, model, *script);
    if (!tokens) return invalid(within(model.directory(), tokens.error()));
    decoder = *std::move(tokens);
  }
  if (arguments.start) decoder.start = *arguments.start;
  if (!arguments.stop.empty()) decoder.ends = arguments.stop;
  if (auto good = check_token("--start", decoder.start, *script); !good)
    return invalid(good.error());
  for (const auto token : decoder.ends)
    if (auto good = check_token("--stop", token, *script); !good) return invalid(good.error());
  auto prompt = prompt_of(model.model(), *script, arguments.prompt, decoder.start);
  if (!prompt) return invalid(within("--prompt", prompt.error()));
  if (!has_encoder) std::fputs(arguments.prompt.c_str(), stdout);
  const Sampling sampling{arguments.tokens, arguments.temperature, arguments.top_k,
                          arguments.seed,   decoder.ends,          arguments.top_p};
  generate(model, *script, sampling, *std::move(prompt), [](const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    return true;
  });
  std::fputc('\n', stdout);
  return ExitCode::done;
}

}  // namespace

void add_sample(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "sample", "generate text with a language model", sample);
  command
      ->add_option("checkpoint", arguments.checkpoint,
                   "a run's name or folder, a folder of checkpoints, or a checkpoint; RUN@best "
                   "is the one with the lowest validation loss")
      ->required();
  command->add_option("--prompt", arguments.prompt,
                      "text to continue, or that an encoder reads; token numbers if there is no "
                      "tokenizer");
  command->add_option("--tokenizer", arguments.tokenizer,
                      "tokenizer.json, or vocab.json beside merges.txt (default: the one in the "
                      "run's folder)");
  command->add_option("--tokens", arguments.tokens, "number of tokens to generate (default: 100)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 24));
  command
      ->add_option("--temperature", arguments.temperature,
                   "sampling temperature; 0 always takes the likeliest token (default: 1)")
      ->check(CLI::Range(0.0, 100.0));
  command
      ->add_option("--top-k", arguments.top_k,
                   "sample from the k likeliest tokens; 0 means all (default: 0)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 24));
  command
      ->add_option("--top-p", arguments.top_p,
                   "sample from the fewest likeliest tokens whose probabilities have this sum; 1 "
                   "means all (default: 1)")
      ->check(CLI::Range(1e-9, 1.0));
  command
      ->add_option("--stop", arguments.stop,
                   "numbers of tokens that end the text, with commas (default: none; for a decoder "
                   "beside an encoder, the end of the texts that it was trained on)")
      ->delimiter(',')
      ->check(CLI::Range(0, INT32_MAX));
  command
      ->add_option("--start", arguments.start,
                   "number of the token with which a decoder beside an encoder begins (default: "
                   "that of its training)")
      ->check(CLI::Range(0, INT32_MAX));
  command->add_option("--seed", arguments.seed,
                      "random seed; equal seeds generate equal texts (default: 1)");
}

}  // namespace troupe::apps
