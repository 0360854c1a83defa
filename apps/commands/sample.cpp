#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "apps/command.h"
#include "apps/commands/named_checkpoint.h"
#include "apps/machine/machine_share.h"
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
  std::uint64_t seed = 1;
};

ExitCode sample(const SampleArguments& arguments, const CommonFlags&) {
  const auto files = storage::disk_files();
  auto trained = open_model(*files, arguments.checkpoint, own_machine_share().cores());
  if (!trained) return invalid(trained.error());
  TrainedModel& model = **trained;
  if (model.model().sample.input_type != DType::i32)
    return complain(ExitCode::invalid,
                    "error: " + model.directory() + ": a " + model.model().kind +
                        " takes no tokens; only language models can be sampled from");
  if (!model.model().predicts_tokens())
    return complain(ExitCode::invalid,
                    "error: " + model.directory() + ": a " + model.model().kind +
                        " predicts numbers, not tokens; only language models can be sampled from");
  if (const auto& more = model.model().sample.more; !more.empty())
    return complain(ExitCode::invalid,
                    "error: " + model.directory() + ": a " + model.model().kind +
                        " takes more inputs than the text that it would continue, such as '" +
                        more.front().name + "'; only models of one input can be sampled from");
  const auto own = tokenizer_of(*files, model.directory());
  if (!own) return invalid(own.error());
  const auto script = Script::open(*files, arguments.tokenizer.empty() ? *own : arguments.tokenizer,
                                   model.model().classes);
  if (!script) return complain(ExitCode::invalid, "error: --tokenizer: " + script.error().text);
  auto tokens = script->read(arguments.prompt);
  if (!tokens) return invalid(within("--prompt", tokens.error()));
  std::fputs(arguments.prompt.c_str(), stdout);
  const Sampling sampling{arguments.tokens, arguments.temperature, arguments.top_k, arguments.seed};
  generate(model, *script, sampling, std::move(*tokens), [](const std::string& text) {
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
                      "text to continue; token numbers if there is no tokenizer");
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
  command->add_option("--seed", arguments.seed,
                      "random seed; equal seeds generate equal texts (default: 1)");
}

}  // namespace troupe::apps
